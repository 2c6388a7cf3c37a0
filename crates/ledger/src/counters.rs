//! What was written, and how much of it is published.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use leasehold_types::Position;

/// Counted since the ledger was opened. Commits are counted and not positions, since SQL writes move no sequence
/// number.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Bytes of a page. Set when the writer is opened.
    pub(crate) page_size: AtomicU64,
    /// Transactions that wrote something. Counted by the writer's hook once a commit is visible, so whoever reads this
    /// number and then begins to read the file sees at least those commits.
    commits: AtomicU64,
    /// Bytes that they put into the log.
    written: AtomicU64,
    /// Frames in the log at the last commit.
    wal_frames: AtomicU64,
    /// Commits and bytes of the newest image that was published.
    published_commits: AtomicU64,
    published_written: AtomicU64,
    /// The last event that was committed.
    position: Mutex<Position>,
}

/// Bytes of a frame of the log beyond its page.
const FRAME_HEADER: u64 = 24;

impl Counters {
    pub(crate) fn new(position: Position) -> Self {
        Self {
            page_size: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            written: AtomicU64::new(0),
            wal_frames: AtomicU64::new(0),
            published_commits: AtomicU64::new(0),
            published_written: AtomicU64::new(0),
            position: Mutex::new(position),
        }
    }

    /// A commit left the log at `frames` frames.
    pub(crate) fn committed(&self, frames: u64) {
        let before = self.wal_frames.swap(frames, Relaxed);
        // Fewer than before: the log was begun anew.
        let added = frames.checked_sub(before).unwrap_or(frames);
        self.written.fetch_add(added * self.frame_bytes(), Relaxed);
        self.commits.fetch_add(1, std::sync::atomic::Ordering::Release);
    }

    /// What was done up to now (the tables that a new file gets) counts as nothing.
    pub(crate) fn start_over(&self) {
        self.commits.store(0, Relaxed);
        self.written.store(0, Relaxed);
    }

    /// A checkpoint took the whole log, so the next commit begins it anew. Called with the writer held.
    pub(crate) fn checkpointed(&self) {
        self.wal_frames.store(0, Relaxed);
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    pub(crate) fn wal_bytes(&self) -> u64 {
        self.wal_frames.load(Relaxed) * self.frame_bytes()
    }

    /// An image with this much in it was published.
    pub(crate) fn published(&self, commits: u64, written: u64) {
        self.published_commits.fetch_max(commits, Relaxed);
        self.published_written.fetch_max(written, Relaxed);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.commits() > self.published_commits.load(Relaxed)
    }

    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.written().saturating_sub(self.published_written.load(Relaxed))
    }

    pub(crate) fn position(&self) -> Position {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_position(&self, position: Position) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    fn frame_bytes(&self) -> u64 {
        self.page_size.load(Relaxed) + FRAME_HEADER
    }
}
