//! Files that are on their way, beside the one they are to become.

use std::path::{Path, PathBuf};

use leasehold_types::AttemptId;

use crate::SnapshotError;

/// A file of our own that is removed when it is dropped, unless it became what it was meant to. Two openings of
/// one path never share one. A crash leaves it: its name begins with the target's and ends on `.scratch`.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn beside(target: &Path, attempt: AttemptId) -> Self {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{attempt}.scratch"));
        Self { path: target.with_file_name(name) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it in the place of `target`; whoever has the old file open keeps the old one.
    pub(crate) fn become_file(self, target: &Path) -> Result<(), SnapshotError> {
        std::fs::rename(&self.path, target).map_err(SnapshotError::local("replace", target))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Gone already when it became its target or was never written; what cannot be removed is only litter.
        let _ = std::fs::remove_file(&self.path);
    }
}
