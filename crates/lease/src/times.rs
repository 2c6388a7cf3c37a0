//! The times of a lease, checked once.

use std::time::Duration;

use leasehold_types::Moment;

use crate::LeaseTimesError;

/// The longest ttl: what a crashed owner's tenants may have to be waited for.
const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The most claims that one renewal carries (measured: a statement of a few milliseconds).
const CHUNK_MAX: usize = 1_000;

/// How long a lease runs, and how much of that is not counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldOptions {
    ttl: Duration,
    margin: Duration,
}

impl HeldOptions {
    /// A lease of `ttl` that is counted on until `margin` before its end. Both are above zero, `margin` is below `ttl`, and `ttl` is
    /// a day at the most.
    pub fn new(ttl: Duration, margin: Duration) -> Result<Self, LeaseTimesError> {
        if ttl.is_zero() || ttl > TTL_MAX {
            return Err(LeaseTimesError::Ttl { ttl, ttl_max: TTL_MAX });
        }
        if margin.is_zero() || margin >= ttl {
            return Err(LeaseTimesError::Margin { margin, ttl });
        }
        Ok(Self { ttl, margin })
    }

    /// How long a grant runs by the store's clock.
    #[must_use]
    pub const fn ttl(self) -> Duration {
        self.ttl
    }

    /// How long before its end a grant stops being counted on: it covers the drift between the two clocks.
    #[must_use]
    pub const fn margin(self) -> Duration {
        self.margin
    }

    /// How long after its request left a grant is counted on: ttl - margin.
    #[must_use]
    pub fn held_for(self) -> Duration {
        self.ttl.saturating_sub(self.margin)
    }

    /// The deadline that a grant gives whose request left at `sent_at` (contract.md, "Words").
    #[must_use]
    pub fn deadline(self, sent_at: Moment) -> Moment {
        sent_at.plus(self.held_for())
    }
}

/// By what times a [`Keeper`](crate::Keeper) renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeeperOptions {
    held: HeldOptions,
    every: Duration,
    chunk: usize,
}

impl KeeperOptions {
    /// Renewals every third of the ttl (or every half of what a grant is counted on, where a wide margin makes that less), in chunks of
    /// 1,000.
    #[must_use]
    pub fn new(held: HeldOptions) -> Self {
        let every = (held.ttl() / 3).min(held.held_for() / 2).max(Duration::from_nanos(1));
        Self { held, every, chunk: CHUNK_MAX }
    }

    /// The same with renewals `every` so often: above zero, below ttl - margin.
    pub fn with_every(self, every: Duration) -> Result<Self, LeaseTimesError> {
        let held_for = self.held.held_for();
        if every.is_zero() || every >= held_for {
            return Err(LeaseTimesError::Every { every, held_for });
        }
        Ok(Self { every, ..self })
    }

    /// The same with chunks of at most `chunk` claims: 1 to 1,000.
    pub fn with_chunk(self, chunk: usize) -> Result<Self, LeaseTimesError> {
        if chunk == 0 || chunk > CHUNK_MAX {
            return Err(LeaseTimesError::Chunk { chunk, chunk_max: CHUNK_MAX });
        }
        Ok(Self { chunk, ..self })
    }

    /// The times of the leases that are kept.
    #[must_use]
    pub const fn held(self) -> HeldOptions {
        self.held
    }

    /// How long the chain waits between the end of a round and the next one.
    #[must_use]
    pub const fn every(self) -> Duration {
        self.every
    }

    /// The most claims that one renewal carries.
    #[must_use]
    pub const fn chunk(self) -> usize {
        self.chunk
    }

    /// How long one renewal may take: (ttl - margin) / 2, so that a second attempt still fits under the deadline.
    #[must_use]
    pub fn attempt_limit(self) -> Duration {
        self.held.held_for() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn times_that_keep_no_lease_are_refused() {
        for (ttl, margin) in [(0, 0), (10, 0), (10, 10), (10, 11), (24 * 60 * 60 + 1, 1)] {
            assert!(HeldOptions::new(secs(ttl), secs(margin)).is_err(), "{ttl} {margin}");
        }
        let keeper = KeeperOptions::new(HeldOptions::new(secs(10), secs(2)).unwrap());
        assert!(keeper.with_every(secs(0)).is_err() && keeper.with_every(secs(8)).is_err());
        assert!(keeper.with_chunk(0).is_err() && keeper.with_chunk(1_001).is_err());
        let error = keeper.with_every(secs(8)).unwrap_err();
        assert_eq!(error.code().as_str(), "invalid_configuration");
    }

    #[test]
    fn the_default_figures_are_the_designs() {
        let held = HeldOptions::new(secs(10), secs(2)).unwrap();
        let keeper = KeeperOptions::new(held);
        assert_eq!(keeper.every(), secs(10) / 3);
        assert_eq!((keeper.attempt_limit(), keeper.chunk()), (secs(4), 1_000));
        assert_eq!(held.deadline(Moment::from_nanos(5)), Moment::from_nanos(8_000_000_005));
    }

    #[test]
    fn the_default_interval_keeps_a_lease_whatever_the_margin() {
        for margin in 1..10 {
            let keeper = KeeperOptions::new(HeldOptions::new(secs(10), secs(margin)).unwrap());
            assert!(keeper.with_every(keeper.every()).is_ok(), "{margin}");
        }
    }
}
