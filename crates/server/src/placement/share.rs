//! How many tenants a replica is to have, and how many at the most.

/// By how much a replica may be above its even share, in ten-thousandths of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slack(u32);

impl Default for Slack {
    /// A quarter: as even as hashing alone makes a few hundred tenants, so that few of them go another way.
    fn default() -> Self {
        Self(WHOLE / 4)
    }
}

/// The parts of a whole.
const WHOLE: u32 = 10_000;
/// The most that may be set: ten times the even share beyond it is no bound any more.
const SLACK_MAX: f64 = 10.0;

impl Slack {
    /// The slack that is this part of the even share, 0 to 10; `None`: it is no such number.
    pub(crate) fn new(part: f64) -> Option<Self> {
        if !(0.0..=SLACK_MAX).contains(&part) {
            return None;
        }
        // Between 0 and 100,000: whole numbers from here on, so that every replica rounds alike.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
        let parts = (part * f64::from(WHOLE)).round() as u32;
        Some(Self(parts))
    }

    /// How many of `total` tenants one of `replicas` has at the most: ceil((1 + slack) x total / replicas), as in Mirrokni, Thorup and
    /// Zadimoghaddam, "Consistent Hashing with Bounded Loads" (2016). Never less than the even share, so that there is always room.
    pub(crate) fn share_max(self, total: u64, replicas: usize) -> u64 {
        let parts = u128::from(total) * u128::from(WHOLE + self.0);
        let bound = parts.div_ceil(u128::from(WHOLE) * replicas.max(1) as u128);
        u64::try_from(bound).unwrap_or(u64::MAX)
    }
}

/// How many of `total` tenants each of `replicas` has where they are even, rounded up.
pub(crate) fn even_share(total: u64, replicas: usize) -> u64 {
    total.div_ceil(replicas.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_papers() {
        let slack = Slack::new(0.25).unwrap();
        for (total, replicas, max) in
            [(0, 3, 0), (1, 3, 1), (3, 3, 2), (30, 3, 13), (31, 1, 39), (1, 0, 2), (u64::MAX, 1, u64::MAX)]
        {
            assert_eq!(slack.share_max(total, replicas), max, "{total} on {replicas}");
        }
        assert_eq!(Slack::new(0.0).unwrap().share_max(31, 3), even_share(31, 3));
        assert_eq!((even_share(0, 3), even_share(31, 3), even_share(5, 0)), (0, 11, 5));
    }

    #[test]
    fn a_slack_is_a_number_between_none_and_ten() {
        for part in [-0.1, 10.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Slack::new(part), None, "{part}");
        }
        assert!(Slack::new(0.0).is_some() && Slack::new(10.0).is_some());
    }
}
