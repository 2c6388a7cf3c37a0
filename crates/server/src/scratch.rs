//! Files that live as long as a request.

use std::path::{Path, PathBuf};

use crate::app::App;

/// A file of a request under way, removed when the request is done, with what SQLite may have put beside it. What a crash leaves is
/// removed at the next start.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A name that no file has.
    pub(crate) fn new(app: &App) -> Self {
        Self(app.scratch.join(app.entropy.uuid().to_string()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            // Most of them are not there.
            let _ = std::fs::remove_file(path);
        }
    }
}
