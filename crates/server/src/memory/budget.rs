//! The one budget of a replica.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use leasehold_ledger::Memory;

use super::MemoryCounters;

/// The part of the budget that only requests themselves may use, and no body and no result: whoever needs little is answered still.
const SPARED_PART: u64 = 8;

/// Bytes that requests may hold, all together.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: u64,
    held: AtomicU64,
    counters: MemoryCounters,
}

impl Budget {
    pub(crate) fn new(bytes_max: u64, counters: MemoryCounters) -> Self {
        Self { bytes_max, held: AtomicU64::new(0), counters }
    }

    /// So many bytes for a request itself: its head, and what its connection buffers.
    pub(super) fn enter(&self, bytes: u64) -> bool {
        self.reserve(bytes, self.bytes_max)
    }

    fn reserve(&self, bytes: u64, bytes_max: u64) -> bool {
        let more = |held: u64| held.checked_add(bytes).filter(|held| *held <= bytes_max);
        let is_reserved = self.held.fetch_update(Relaxed, Relaxed, more).is_ok();
        if is_reserved {
            self.tell();
        } else {
            self.counters.shed.inc();
        }
        is_reserved
    }

    fn tell(&self) {
        // Whoever comes last has the last word, give or take those at the same moment; nothing is decided by it.
        self.counters.held.set(i64::try_from(self.held.load(Relaxed)).unwrap_or(i64::MAX));
    }
}

impl Memory for Budget {
    fn take(&self, bytes: u64) -> bool {
        self.reserve(bytes, self.bytes_max - self.bytes_max / SPARED_PART)
    }

    fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Relaxed);
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_leaves_room_for_what_is_small() {
        let counters = MemoryCounters::default();
        let budget = Budget::new(800, counters.clone());
        assert!(budget.take(700));
        assert!(!budget.take(1), "an eighth is spared");
        assert!(budget.enter(100));
        assert!(!budget.enter(1));
        assert_eq!((counters.held.get(), counters.shed.get()), (800, 2));
        budget.give_back(700);
        assert!(!budget.take(601) && budget.take(600));
        budget.give_back(600);
        budget.give_back(100);
        assert_eq!((counters.held.get(), counters.shed.get()), (0, 3));
        assert!(!budget.take(u64::MAX), "no sum wraps");
    }
}
