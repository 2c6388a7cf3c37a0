//! The file itself, held open for as long as a ledger lives.

use std::{
    collections::BTreeSet,
    fs::{File, Metadata, OpenOptions, TryLockError},
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::LedgerError;

/// Device and inode: a file, whatever leads to it.
type Identity = (u64, u64);

/// The files that ledgers of this process have open. POSIX locks are the process's, so this is too: even to try a
/// file's `flock` it has to be opened, and closing it again would drop the locks of a ledger that lives here.
static LIVE_HERE: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

fn live_here() -> MutexGuard<'static, BTreeSet<Identity>> {
    LIVE_HERE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Whether a ledger, of this process or of another, has the file at `path` open.
pub(crate) fn is_alive(path: &Path) -> Result<bool, LedgerError> {
    let metadata = path.metadata().map_err(|error| LedgerError::io("look at", path, error))?;
    if live_here().contains(&identity(&metadata)) {
        return Ok(true);
    }
    let file = File::open(path).map_err(|error| LedgerError::io("open", path, error))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(LedgerError::io("lock", path, error)),
    }
}

/// A handle on a ledger's file: for copying it, for knowing whether its path still leads to it, and as the sign that
/// it is alive.
///
/// Opened once and dropped after every connection: closing any handle on a file drops all POSIX locks that the process
/// has on it, `SQLite`'s too. The sign is a `flock`, which those do not touch.
#[derive(Debug)]
pub(crate) struct LiveFile {
    path: PathBuf,
    file: File,
    identity: Identity,
    /// Set once, by the first [`Self::let_go`]: the same file may have been opened anew since.
    gone: AtomicBool,
}

impl LiveFile {
    /// Opens the file, creates it where there is none, and marks it as alive.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        if path.metadata().is_ok_and(|metadata| live_here().contains(&identity(&metadata))) {
            return Err(LedgerError::InUse { path: path.to_owned() });
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| LedgerError::io("open", path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LedgerError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(LedgerError::io("lock", path, error)),
        }
        let metadata = file.metadata().map_err(|error| LedgerError::io("look at", path, error))?;
        let identity = identity(&metadata);
        live_here().insert(identity);
        Ok(Self { path: path.to_owned(), file, identity, gone: AtomicBool::new(false) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to this file.
    pub(crate) fn is_in_place(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|metadata| identity(&metadata) == self.identity)
    }

    /// Refuses when the path leads elsewhere: what would be opened there is another tenure's.
    pub(crate) fn check_in_place(&self) -> Result<(), LedgerError> {
        if self.is_in_place() { Ok(()) } else { Err(LedgerError::Replaced { path: self.path.clone() }) }
    }

    /// The file's length in bytes.
    pub(crate) fn len(&self) -> Result<u64, LedgerError> {
        let metadata = self.file.metadata().map_err(|error| LedgerError::io("look at", &self.path, error))?;
        Ok(metadata.len())
    }

    /// Copies the first `len` bytes to `to`, by positions, in bounded memory.
    pub(crate) fn copy_to(&self, to: &File, len: u64) -> io::Result<()> {
        const CHUNK: usize = 256 * 1024;
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        while at < len {
            let want = usize::try_from(len - at).unwrap_or(CHUNK).min(CHUNK);
            self.file.read_exact_at(&mut chunk[..want], at)?;
            to.write_all_at(&chunk[..want], at)?;
            at += want as u64;
        }
        Ok(())
    }

    /// Takes the sign of life away; the handle stays.
    pub(crate) fn let_go(&self) {
        if self.gone.swap(true, Relaxed) {
            return;
        }
        live_here().remove(&self.identity);
        if let Err(error) = self.file.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "failed to unlock a ledger's file");
        }
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        self.let_go();
    }
}
