//! So many requests a second, with a burst, for each of a bounded number of keys.

use std::{fmt, hash::Hash, num::NonZeroU32, sync::Arc, time::Duration};

use governor::{
    Quota, RateLimiter, clock::Clock as GovernorClock, middleware::NoOpMiddleware, nanos::Nanos,
    state::keyed::HashMapStateStore,
};
use leasehold_types::Clock;

/// The replica's clock, as the limiter reads it.
#[derive(Clone, Debug)]
struct Ticks(Arc<dyn Clock>);

impl GovernorClock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.now().as_nanos().into()
    }
}

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, Ticks, NoOpMiddleware<Nanos>>;

/// Why a request is one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooMany {
    /// Its key has used up its rate; there is room again after this time.
    Spent(Duration),
    /// So many keys were used within their bursts that no other one is remembered.
    Keys,
}

/// The rates of all keys. A key that was quiet for the time of a burst costs nothing.
pub(crate) struct Rates<K: Hash + Eq + Clone> {
    /// `None` where there is no bound.
    limiter: Option<Limiter<K>>,
    clock: Ticks,
    keys_max: usize,
}

impl<K: Hash + Eq + Clone> Rates<K> {
    /// `per_second`: 0 for no bound. `burst`: for how long of the rate may come at once what did not come before.
    pub(crate) fn new(per_second: u32, burst: Duration, keys_max: usize, clock: &Arc<dyn Clock>) -> Self {
        let clock = Ticks(Arc::clone(clock));
        let limiter = quota(per_second, burst)
            .map(|quota| RateLimiter::new(quota, HashMapStateStore::default(), clock.clone()));
        Self { limiter, clock, keys_max }
    }

    /// Counts a request of `key`, or says why it is one too many.
    pub(crate) fn check(&self, key: &K) -> Result<(), TooMany> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if limiter.len() >= self.keys_max {
            // Those whose bursts are whole again are as good as new.
            limiter.retain_recent();
            if limiter.len() >= self.keys_max {
                return Err(TooMany::Keys);
            }
        }
        limiter.check_key(key).map_err(|spent| TooMany::Spent(spent.wait_time_from(self.clock.now())))
    }
}

fn quota(per_second: u32, burst: Duration) -> Option<Quota> {
    let per_second = NonZeroU32::new(per_second)?;
    let at_once =
        u64::from(per_second.get()).saturating_mul(burst.as_millis().try_into().unwrap_or(u64::MAX)) / 1_000;
    let at_once = NonZeroU32::new(u32::try_from(at_once).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
    Some(Quota::per_second(per_second).allow_burst(at_once))
}

impl<K: Hash + Eq + Clone> fmt::Debug for Rates<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rates").field("is_bounded", &self.limiter.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::ManualClock;

    use super::*;

    fn rates(per_second: u32, burst: Duration, keys_max: usize) -> (ManualClock, Rates<u32>) {
        let clock = ManualClock::new();
        let edge: Arc<dyn Clock> = Arc::new(clock.clone());
        (clock, Rates::new(per_second, burst, keys_max, &edge))
    }

    #[test]
    fn a_burst_is_let_through_and_then_so_many_a_second() {
        let (clock, rates) = rates(10, Duration::from_secs(2), 100);
        let let_through = |key: u32| (0..100).take_while(|_| rates.check(&key).is_ok()).count();
        assert_eq!(let_through(1), 20);
        let Err(TooMany::Spent(wait)) = rates.check(&1) else { panic!("spent") };
        assert!(wait <= Duration::from_millis(100) && wait > Duration::from_millis(50), "{wait:?}");
        assert_eq!(let_through(2), 20, "another one's is its own");
        clock.advance(wait);
        assert_eq!(let_through(1), 1, "true to what was said");
        clock.advance(Duration::from_secs(1));
        assert_eq!(let_through(1), 10);
        clock.advance(Duration::from_secs(60));
        assert_eq!(let_through(1), 20, "no more than a burst is saved up");
    }

    #[test]
    fn keys_are_bounded_and_quiet_ones_are_let_go_of() {
        let (clock, rates) = rates(1, Duration::from_secs(1), 3);
        for key in 0..3 {
            assert_eq!(rates.check(&key), Ok(()));
        }
        assert_eq!(rates.check(&3), Err(TooMany::Keys));
        clock.advance(Duration::from_secs(3));
        assert_eq!(rates.check(&3), Ok(()));
    }

    #[test]
    fn nothing_is_bounded_that_has_no_rate() {
        let (_, rates) = rates(0, Duration::from_secs(1), 1);
        assert!((0..1_000).all(|key| rates.check(&key).is_ok()));
    }

    #[test]
    fn a_rate_below_its_burst_lets_one_through() {
        let (_, rates) = rates(1, Duration::from_millis(1), 10);
        assert_eq!(rates.check(&1), Ok(()));
        assert!(rates.check(&1).is_err());
    }
}
