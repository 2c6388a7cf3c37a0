//! A file that appears whole or not at all.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use tempfile::{TempDir, TempPath};

use crate::error::CliError;

/// A file on its way, in a directory of its own beside its place; both go when this is dropped.
#[derive(Debug)]
pub(crate) struct NewFile {
    dir: TempDir,
    to: PathBuf,
    replace: bool,
}

impl NewFile {
    /// A way to `to`. What is there is refused at once unless it may be replaced.
    pub(crate) fn beside(to: &Path, replace: bool) -> Result<Self, CliError> {
        match to.symlink_metadata() {
            Ok(found) if !replace || found.is_dir() => return Err(CliError::Exists { path: to.to_owned() }),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(CliError::Local { action: "look at", path: to.to_owned(), source });
            }
            _ => {}
        }
        let parent = match to.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let dir = tempfile::Builder::new().prefix(".leasehold-").tempdir_in(parent);
        let failed = |source| CliError::Local { action: "write in", path: parent.to_owned(), source };
        Ok(Self { dir: dir.map_err(failed)?, to: to.to_owned(), replace })
    }

    /// Where to write it.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("ledger.db")
    }

    /// Puts what was written in its place.
    pub(crate) fn appear(self) -> Result<(), CliError> {
        let path = self.path();
        let failed = |source| CliError::Local { action: "write", path: self.to.clone(), source };
        File::open(&path).and_then(|file| file.sync_all()).map_err(failed)?;
        let file = TempPath::try_from_path(path).map_err(failed)?;
        let put = if self.replace { file.persist(&self.to) } else { file.persist_noclobber(&self.to) };
        put.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => CliError::Exists { path: self.to.clone() },
            _ => failed(error.error),
        })
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ErrorCode;

    use super::*;

    #[test]
    fn it_appears_whole_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("a.db");
        let file = NewFile::beside(&to, false).unwrap();
        std::fs::write(file.path(), b"one").unwrap();
        assert!(!to.exists());
        file.appear().unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_there_stays_unless_it_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("a.db");
        let late = NewFile::beside(&to, false).unwrap();
        std::fs::write(&to, b"old").unwrap();
        assert_eq!(NewFile::beside(&to, false).unwrap_err().code(), ErrorCode::InvalidArgument);
        // It came between the look and the end.
        std::fs::write(late.path(), b"new").unwrap();
        assert!(matches!(late.appear(), Err(CliError::Exists { .. })));
        assert_eq!(std::fs::read(&to).unwrap(), b"old");
        let file = NewFile::beside(&to, true).unwrap();
        std::fs::write(file.path(), b"new").unwrap();
        file.appear().unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
        assert!(NewFile::beside(dir.path(), true).is_err(), "a directory is never replaced");
    }

    #[test]
    fn one_that_is_dropped_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = NewFile::beside(&dir.path().join("a.db"), false).unwrap();
        std::fs::write(file.path(), b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
