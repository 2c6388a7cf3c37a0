//! Where a replica stands between its start and its end, and whether it is heard.

use std::{
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
    time::Duration,
};

use leasehold_types::{Clock, Moment};

/// What a replica does with new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// It is coming up and not ready.
    Starting = 0,
    /// It takes tenants.
    Serving = 1,
    /// It hands its tenants off and takes none: on a signal, by `POST /v1/drain`, or because its id was taken.
    Draining = 2,
}

/// The stage, which only moves forward.
#[derive(Debug, Default)]
pub(crate) struct StageCell(AtomicU8);

impl StageCell {
    pub(crate) fn advance(&self, to: Stage) {
        self.0.fetch_max(to as u8, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> Stage {
        match self.0.load(Ordering::SeqCst) {
            0 => Stage::Starting,
            1 => Stage::Serving,
            _ => Stage::Draining,
        }
    }
}

/// When the lease store last answered this replica.
#[derive(Debug, Default)]
pub(crate) struct LastHeard(AtomicU64);

impl LastHeard {
    /// It did just now.
    pub(crate) fn note(&self, clock: &dyn Clock) {
        self.0.fetch_max(clock.now().as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn ago(&self, clock: &dyn Clock) -> Duration {
        clock.now().since(Moment::from_nanos(self.0.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_never_left_backwards() {
        let cell = StageCell::default();
        assert_eq!(cell.get(), Stage::Starting);
        cell.advance(Stage::Draining);
        cell.advance(Stage::Serving);
        assert_eq!(cell.get(), Stage::Draining);
    }
}
