//! How long a caller waits: `Leasehold-Timeout`.

use std::time::Duration;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use leasehold_types::{Clock, Moment};

use crate::{
    app::{App, AppState},
    extract::only,
    problem::Problem,
};

/// The header.
pub(crate) const HEADER: &str = "leasehold-timeout";
/// How long a request waits that does not say so.
const DEFAULT: Duration = Duration::from_secs(30);

/// Until when a request may wait for its tenant to settle, and for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    until: Moment,
}

impl Patience {
    pub(crate) fn of(clock: &dyn Clock, wait: Duration) -> Self {
        Self { until: clock.now().plus(wait) }
    }

    /// What is left of it.
    pub(crate) fn left(self, clock: &dyn Clock) -> Duration {
        self.until.since(clock.now())
    }
}

impl Patience {
    /// That of a request that may say so wrongly: whoever answers it refuses that.
    pub(crate) fn of_headers(headers: &HeaderMap, app: &App) -> Self {
        let wait = read(headers).unwrap_or(DEFAULT);
        Self::of(app.clock.as_ref(), wait.min(app.config.limits.timeout_max))
    }

    /// Whether the header says a time, or is not there.
    pub(crate) fn is_valid(headers: &HeaderMap) -> bool {
        read(headers).is_some()
    }
}

/// How long the caller waits; `None`: the header says no time.
fn read(headers: &HeaderMap) -> Option<Duration> {
    match only(headers, HEADER).ok()? {
        None => Some(DEFAULT),
        Some(value) => value.to_str().ok().and_then(parse),
    }
}

impl FromRequestParts<AppState> for Patience {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let wait = read(&parts.headers).ok_or_else(|| {
            Problem::invalid(
                "Leasehold-Timeout is there once, and is a whole number of seconds, or of `ms`, `s` or `m`: 30, 500ms",
            )
        })?;
        Ok(Self::of(app.clock.as_ref(), wait.min(app.config.limits.timeout_max)))
    }
}

fn parse(text: &str) -> Option<Duration> {
    let text = text.trim_matches([' ', '\t']);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_plain = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_plain.then(|| digits.parse().ok()).flatten()?;
    match &text[digits.len()..] {
        "" | "s" => Some(Duration::from_secs(number)),
        "ms" => Some(Duration::from_millis(number)),
        "m" => Some(Duration::from_secs(number * 60)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use leasehold_fuzz::{Format, Read};

    use super::*;
    use crate::fuzz::{bare, corpus};

    #[test]
    fn a_time_is_the_written_one_whatever_the_bytes() {
        let read = |bytes: &[u8]| -> Read {
            let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
            let millis = parse(text).ok_or("no time")?.as_millis();
            // By the unit in which it has no more digits than a caller may send.
            let written = match millis {
                minutes if minutes % 60_000 == 0 => format!("{}m", minutes / 60_000),
                seconds if seconds % 1_000 == 0 => format!("{}s", seconds / 1_000),
                millis => format!("{millis}ms"),
            };
            Ok(written.into_bytes())
        };
        let millis = |bytes: &[u8]| {
            let text = bare(bytes);
            let (digits, unit) =
                text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
            let of_unit: u64 = match unit {
                "" | "s" => 1_000,
                "ms" => 1,
                "m" => 60_000,
                _ => return None,
            };
            Some(digits.parse::<u64>().ok()? * of_unit)
        };
        Format { name: "timeout", read: &read, is_same: &|input, written| millis(input) == millis(written) }
            .hold(corpus());
    }

    #[test]
    fn a_bare_number_counts_seconds() {
        assert_eq!(parse("30"), Some(Duration::from_secs(30)));
        assert_eq!(parse(" 0s "), Some(Duration::ZERO));
        assert_eq!(parse("1500ms"), Some(Duration::from_millis(1_500)));
        assert_eq!(parse("2m"), Some(Duration::from_secs(120)));
        for text in ["", "s", "-1", "+1", "1.5", "1h", "9999999999", "1 s", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
