//! Temporary files: where a statement puts what it sorts and gathers beyond a little memory, and how much that may be.
//!
//! With them a sort is done in pieces of some megabytes, between which the gate and the time are asked; in memory the whole of it was one
//! step of SQLite's machine, and 29 s of it were seen behind a time limit of 3 (decision 0051).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rusqlite::Connection;

use crate::{LedgerError, session::from_sqlite};

/// What has to stay free on the disk of the temporary files, for everybody's ledgers: a part of it, and this at the most.
const FREE_PART: u64 = 20;
const FREE_BYTES_MAX: u64 = 256 << 20;

/// Written by [`keep_temporary_files_in`].
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// Has `SQLite` put the temporary files of this process into `directory`, which has to be there. Each of them is nameless as soon as it is
/// made, so nothing stays there. Otherwise they go where the system keeps such files.
///
/// For the program that serves, once, at its start: the directory is the process's.
pub fn keep_temporary_files_in(directory: &Path) -> Result<(), LedgerError> {
    let failed = |error| from_sqlite(error, directory);
    let text = directory.to_str().ok_or(LedgerError::InvalidArgument {
        what: "the directory of temporary files",
        rule: "must be a path in UTF-8",
    })?;
    let connection = Connection::open_in_memory().map_err(failed)?;
    connection.pragma_update(None, "temp_store_directory", text).map_err(failed)?;
    // A second call is the same process's mistake; `SQLite` has the new one then, and so should whoever looks at its disk.
    let _ = DIRECTORY.set(directory.to_owned());
    Ok(())
}

/// Where they are.
pub(crate) fn directory() -> &'static Path {
    DIRECTORY.get().map_or(Path::new("/var/tmp"), PathBuf::as_path)
}

/// Bytes that this thread has written so far; `None` where the system does not say so.
///
/// A statement runs on one thread, and one that only reads writes nothing but temporary files.
pub(crate) fn written_by_this_thread() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("wchar: "))?.trim().parse().ok()
}

/// Whether what is free on their disk is for the ledgers alone.
pub(crate) fn is_disk_short() -> bool {
    rustix::fs::statvfs(directory()).is_ok_and(|disk| {
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        bytes(disk.f_bavail) < (bytes(disk.f_blocks) / FREE_PART).min(FREE_BYTES_MAX)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_thread_knows_what_it_wrote() {
        let before = written_by_this_thread().unwrap();
        tempfile::tempfile().unwrap().write_all(&vec![0; 100_000]).unwrap();
        let after = written_by_this_thread().unwrap();
        assert!((100_000..200_000).contains(&(after - before)), "{before} {after}");
    }
}
