//! Durations: taken, ordered, shown.

use std::time::Duration;

use leasehold_types::{Clock as _, Moment, SystemClock};

/// How long it has been since it was started.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Moment);

impl Stopwatch {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        Self(SystemClock.now())
    }

    /// How long it has run.
    #[must_use]
    pub fn read(self) -> Duration {
        SystemClock.now().since(self.0)
    }
}

/// The one in the middle; zero where there is none.
#[must_use]
pub fn median(times: &[Duration]) -> Duration {
    percentile(times, 50)
}

/// The smallest one that `percent` of them do not exceed; zero where there is none.
#[must_use]
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

/// Three digits and a unit.
#[must_use]
pub fn show(time: Duration) -> String {
    let nanos = time.as_secs_f64() * 1e9;
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "us"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let decimals = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}
