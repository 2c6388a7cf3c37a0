//! Everything that happened, line by line.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest as _, Sha256};

/// How many lines are kept where not all are.
const LAST: usize = 400;

/// A trace: a digest over all lines, and the lines themselves, or the last of them.
#[derive(Debug)]
pub(super) struct Trace(Mutex<Lines>);

#[derive(Debug)]
struct Lines {
    keeps_all: bool,
    count: u64,
    digest: Sha256,
    kept: VecDeque<String>,
}

impl Trace {
    pub(super) fn new(keeps_all: bool) -> Self {
        Self(Mutex::new(Lines { keeps_all, count: 0, digest: Sha256::new(), kept: VecDeque::new() }))
    }

    pub(super) fn line(&self, line: String) {
        let mut lines = self.lines();
        lines.count += 1;
        lines.digest.update(line.as_bytes());
        lines.digest.update(b"\n");
        if !lines.keeps_all && lines.kept.len() == LAST {
            lines.kept.pop_front();
        }
        lines.kept.push_back(line);
    }

    /// How many lines there are, their digest, and those that were kept.
    pub(super) fn read(&self) -> (u64, String, Vec<String>) {
        let lines = self.lines();
        let digest = hex::encode(lines.digest.clone().finalize());
        (lines.count, digest, lines.kept.iter().cloned().collect())
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
