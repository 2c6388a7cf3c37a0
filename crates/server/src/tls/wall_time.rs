//! The calendar by which certificates are judged.

use std::{sync::Arc, time::Duration};

use leasehold_types::Clock;
use rustls::{pki_types::UnixTime, time_provider::TimeProvider};

/// The calendar of the clock that was handed in.
#[derive(Debug)]
pub(super) struct WallTime(pub(super) Arc<dyn Clock>);

impl TimeProvider for WallTime {
    fn current_time(&self) -> Option<UnixTime> {
        // Before 1970 nothing is valid, and nobody is let in.
        let millis = u64::try_from(self.0.wall().as_millis()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_millis(millis)))
    }
}
