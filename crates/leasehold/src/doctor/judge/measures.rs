//! Times and sizes, as people read them.

use std::time::Duration;

use indicatif::HumanBytes;

/// The middle and the longest of some times; `None` where there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) median: Duration,
    pub(super) longest: Duration,
    count: usize,
}

impl Spread {
    pub(super) fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        let median = *times.get(times.len() / 2)?;
        Some(Self { median, longest: *times.last()?, count: times.len() })
    }

    pub(super) fn shown(self) -> String {
        format!("median {}, longest {} of {}", shown(self.median), shown(self.longest), self.count)
    }
}

/// In milliseconds, or seconds where it is longer.
pub(super) fn shown(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// A size.
pub(super) fn bytes(count: u64) -> String {
    HumanBytes(count).to_string()
}

/// A value for the configuration that is `at_least` so long: whole seconds, or tenths of one where it is shorter.
pub(super) fn setting(at_least: Duration) -> String {
    let step = if at_least > Duration::from_secs(1) { 1_000 } else { 100 };
    let millis = u64::try_from(at_least.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
    humantime::format_duration(Duration::from_millis(millis.div_ceil(step).saturating_mul(step))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_the_longest() {
        let millis = |n| Duration::from_millis(n);
        let spread = Spread::of([millis(9), millis(1), millis(2)]).unwrap();
        assert_eq!((spread.median, spread.longest), (millis(2), millis(9)));
        assert_eq!(spread.shown(), "median 2.0 ms, longest 9.0 ms of 3");
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_setting_is_rounded_up_to_something_round() {
        for (millis, expected) in
            [(1, "100ms"), (100, "100ms"), (101, "200ms"), (1_001, "2s"), (61_500, "1m 2s")]
        {
            assert_eq!(setting(Duration::from_millis(millis)), expected);
        }
        assert_eq!(shown(Duration::from_micros(1_250)), "1.2 ms");
        assert_eq!(shown(Duration::from_millis(1_250)), "1.2 s");
    }
}
