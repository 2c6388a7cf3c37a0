//! Where a replica stands between its start and its end.

use std::sync::atomic::{AtomicU8, Ordering};

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
