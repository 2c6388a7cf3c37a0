//! Time, injected.
//!
//! Two kinds of time matter and are never mixed. A [`Moment`] is a reading of the replica's own clock, which counts while
//! the machine is suspended, because a lease runs out then too (contract.md, "What the checks imply", 4). A [`Timestamp`]
//! is the calendar's, for people and for what outlives a boot; no safety rule rests on it.

use std::{fmt, future::Future, pin::Pin, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// A reading of a replica's own clock: nanoseconds since an arbitrary origin, the same for the whole boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The clock's origin. As a deadline it means "never held".
    pub const ORIGIN: Self = Self(0);

    /// A moment `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds since the origin, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `by` later, at most the last one that can be told.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The moment `by` earlier, at least the origin.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// A calendar time in milliseconds since 1970-01-01T00:00:00Z. Displays and serializes as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no RFC 3339 time, or one outside what the calendar can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an RFC 3339 time")]
pub struct TimestampError {
    text: String,
}

impl Timestamp {
    /// The time `millis` milliseconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The time `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time `by` earlier.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Self(time.as_millisecond()))
            .map_err(|_| TimestampError { text: text.chars().take(64).collect() })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a replica reads the time. One of the three seams of the house (with the two stores).
pub trait Clock: Send + Sync + fmt::Debug {
    /// The replica's own clock: never goes back, counts while the machine sleeps.
    fn now(&self) -> Moment;

    /// The calendar. May jump; nothing that must hold rests on it.
    fn wall(&self) -> Timestamp;
}

/// How a replica waits. Apart from [`Clock`], since the two really are different: a machine's timers stand still
/// while it is suspended and its leases do not.
pub trait Timer: Send + Sync + fmt::Debug {
    /// Completes once `wait` has passed. Dropping it forgets it.
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>>;
}

/// The machine's clocks: `CLOCK_BOOTTIME` (where there is none, the monotonic clock) and the calendar.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let id = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(id);
        // A boot's clock is never negative and tv_nsec is below 10^9, so nothing is lost here.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        Moment(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    fn wall(&self) -> Timestamp {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let millis = time.tv_nsec / 1_000_000;
        Timestamp(time.tv_sec.saturating_mul(1_000).saturating_add(millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate_instead_of_wrapping() {
        assert_eq!(Moment::ORIGIN.minus(Duration::from_secs(1)), Moment::ORIGIN);
        assert_eq!(Moment::from_nanos(u64::MAX).plus(Duration::from_secs(1)), Moment::from_nanos(u64::MAX));
        assert_eq!(Moment::ORIGIN.since(Moment::from_nanos(7)), Duration::ZERO);
        assert_eq!(Moment::ORIGIN.plus(Duration::from_millis(7)).as_millis(), 7);
    }

    #[test]
    fn timestamps_are_rfc_3339_both_ways() {
        let time = Timestamp::from_millis(1_790_000_000_123);
        assert_eq!(time.to_string(), "2026-09-21T14:13:20.123Z");
        assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
        assert_eq!(serde_json::to_string(&time).unwrap(), "\"2026-09-21T14:13:20.123Z\"");
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn the_system_clock_does_not_go_back() {
        let first = SystemClock.now();
        assert!(SystemClock.now() >= first);
        assert!(SystemClock.wall().as_millis() > 1_700_000_000_000);
    }
}
