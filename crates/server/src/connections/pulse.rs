//! What a connection is at, told by who serves it to who reads it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// The requests of one connection, which come one after the other.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// How many have begun.
    begun: AtomicU64,
    /// How many have ended: their answer was handed to the connection, or given up.
    ended: AtomicU64,
    /// Whether anything ever arrived.
    is_used: AtomicBool,
}

/// A request at work; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Beat(Arc<Pulse>);

impl Pulse {
    pub(super) fn begin(self: &Arc<Self>) -> Beat {
        self.begun.fetch_add(1, Relaxed);
        Beat(Arc::clone(self))
    }

    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Relaxed)
    }

    pub(super) fn is_at_work(&self) -> bool {
        // One task serves the connection, so nothing changes between the two.
        self.begun() > self.ended.load(Relaxed)
    }

    pub(super) fn use_it(&self) {
        self.is_used.store(true, Relaxed);
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Relaxed)
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}
