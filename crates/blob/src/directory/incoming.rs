//! Objects on their way in: files that only their writer knows, gone with it.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat},
    io::{Errno, Result},
};

const NAME_PREFIX: &str = "put-";
// A name is passed over when a process with our id left it, or while a sweep looks at it: rarely, and never many in a row.
const NAMES_MAX: u32 = 1_000;

/// Tells the files of one process apart, whichever of its stores writes them.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The directory of incoming objects.
#[derive(Debug)]
pub(super) struct IncomingDir(OwnedFd);

/// One incoming object. Its name goes when this does.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: String,
    /// Holds the lock that says that its writer lives.
    pub(super) file: File,
}

impl IncomingDir {
    pub(super) const fn new(dir: OwnedFd) -> Self {
        Self(dir)
    }

    /// A new, empty file that no sweep takes away while it is open.
    pub(super) fn create(&self) -> Result<Incoming<'_>> {
        let process = rustix::process::getpid().as_raw_nonzero();
        for _ in 0..NAMES_MAX {
            let name = format!("{NAME_PREFIX}{process}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = match openat(&self.0, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => File::from(file),
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno),
            };
            // A sweep may find the file before it is locked. It then holds the lock, or has unlinked the name already.
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if fstat(&file)?.st_nlink > 0 => {
                    return Ok(Incoming { dir: self.0.as_fd(), name, file });
                }
                Ok(()) | Err(Errno::WOULDBLOCK) => {}
                Err(errno) => {
                    // The first failure is the one to tell.
                    let _ = unlinkat(&self.0, &name, AtFlags::empty());
                    return Err(errno);
                }
            }
        }
        Err(Errno::EXIST)
    }

    /// Removes the files whose writers are gone and answers how many there were.
    pub(super) fn sweep(&self) -> Result<u64> {
        let mut swept = 0;
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(NAME_PREFIX.as_bytes()) {
                swept += u64::from(self.remove_if_left_behind(entry.file_name())?);
            }
        }
        Ok(swept)
    }

    fn remove_if_left_behind(&self, name: &std::ffi::CStr) -> Result<bool> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => file,
            // Gone meanwhile, or no file of ours.
            Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(false),
            Err(errno) => return Err(errno),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(errno) => return Err(errno),
        }
        // The name may have passed to another writer while we opened it. From here on it cannot: whoever removes a name holds
        // the lock of the file behind it.
        let locked = fstat(&file)?;
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) if (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino) => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(errno),
        }
        unlinkat(&self.0, name, AtFlags::empty())?;
        Ok(true)
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        if let Err(errno) = unlinkat(self.dir, &self.name, AtFlags::empty()) {
            tracing::warn!(name = %self.name, %errno, "an incoming object stays until the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::MetadataExt as _, path::Path, thread};

    use super::*;

    fn opened(root: &Path) -> IncomingDir {
        IncomingDir::new(File::open(root).unwrap().into())
    }

    #[test]
    fn names_that_are_taken_are_passed_over() {
        // What a process with our id in another container is writing, or has left.
        let root = tempfile::tempdir().unwrap();
        let next = NEXT.load(Ordering::Relaxed);
        for n in next..next + 50 {
            let name = format!("{NAME_PREFIX}{}-{n}", std::process::id());
            std::fs::write(root.path().join(name), "theirs").unwrap();
        }
        let dir = opened(root.path());
        let ours = dir.create().unwrap();
        assert_eq!(ours.file.metadata().unwrap().len(), 0);
        drop(ours);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 50);
        assert_eq!(dir.sweep().unwrap(), 50);
    }

    #[test]
    fn a_writer_keeps_its_name_beside_sweeps() {
        let root = tempfile::tempdir().unwrap();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let root = root.path().to_owned();
                thread::spawn(move || {
                    let dir = opened(&root);
                    for _ in 0..500 {
                        let incoming = dir.create().unwrap();
                        let named = std::fs::metadata(root.join(&incoming.name)).unwrap();
                        assert_eq!(named.ino(), incoming.file.metadata().unwrap().ino());
                    }
                })
            })
            .collect();
        let dir = opened(root.path());
        while !writers.iter().all(thread::JoinHandle::is_finished) {
            dir.sweep().unwrap();
        }
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(dir.sweep().unwrap(), 0);
    }
}
