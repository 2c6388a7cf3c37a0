//! How the time of a shutdown is shared out: a process that is told to go is gone within its grace period.

use std::time::Duration;

/// How long a replica of a fleet that has handed everything off still answers. Others may take it for the owner until an answer tells them
/// better; a connection that ends under a request of theirs would leave open whether that was executed.
const LINGER: Duration = Duration::from_secs(1);
/// How long who still waits at another replica has to be told so, once nothing is waited for any more.
const ANSWERS_MAX: Duration = Duration::from_millis(500);
/// The part of a short grace period that each of what comes after the handing off may take: most of it is for the tenants.
const SHARE: u32 = 8;

/// The shares of one grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Going {
    grace: Duration,
    /// For handing the tenants off; what is not away by then is abandoned.
    pub(super) hand_off: Duration,
    /// For answering on with nothing left.
    pub(super) linger: Duration,
    /// What the connections have at least, and at the most.
    connections: (Duration, Duration),
    /// For the last answers.
    pub(super) answers: Duration,
}

impl Going {
    /// `connections_max`: how long connections may take where there is time.
    pub(super) fn of(grace: Duration, connections_max: Duration, is_in_fleet: bool) -> Self {
        let share = grace / SHARE;
        let linger = if is_in_fleet { LINGER.min(share) } else { Duration::ZERO };
        let connections_min = connections_max.min(share);
        let answers = ANSWERS_MAX.min(share);
        let hand_off = grace.saturating_sub(linger + connections_min + answers);
        Self { grace, hand_off, linger, connections: (connections_min, connections_max), answers }
    }

    /// How long the connections have to end, so long after the shutdown began.
    pub(super) fn connections(&self, elapsed: Duration) -> Duration {
        let (least, most) = self.connections;
        self.grace.saturating_sub(elapsed).saturating_sub(self.answers).clamp(least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(5);

    fn of(millis: u64, is_in_fleet: bool) -> Going {
        Going::of(Duration::from_millis(millis), MOST, is_in_fleet)
    }

    #[test]
    fn whatever_the_grace_period_all_of_it_ends_within() {
        for is_in_fleet in [true, false] {
            for millis in [1, 7, 100, 1_000, 8_000, 60_000, 3_600_000] {
                let going = of(millis, is_in_fleet);
                let before = going.hand_off + going.linger;
                let whole = before + going.connections(before) + going.answers;
                assert!(whole <= Duration::from_millis(millis), "{going:?}");
                assert!(
                    going.hand_off >= Duration::from_millis(millis) / 8 * 5,
                    "most is for tenants: {going:?}"
                );
            }
        }
    }

    #[test]
    fn what_the_tenants_did_not_need_is_for_the_connections() {
        let going = of(60_000, true);
        assert_eq!(going.hand_off, Duration::from_millis(53_500));
        assert_eq!(going.connections(Duration::from_secs(2)), MOST);
        let going = of(8_000, true);
        assert_eq!((going.hand_off, going.linger), (Duration::from_millis(5_500), Duration::from_secs(1)));
        assert_eq!(going.connections(Duration::from_millis(6_500)), Duration::from_secs(1));
        assert_eq!(going.connections(Duration::from_secs(3)), Duration::from_millis(4_500));
        assert_eq!(going.connections(Duration::from_secs(30)), Duration::from_secs(1), "late as it is");
        assert_eq!(of(8_000, false).linger, Duration::ZERO, "nobody forwards to it");
    }
}
