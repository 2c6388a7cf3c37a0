//! [`DirectoryStore`].

use std::{
    fs::{DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};
use tokio::sync::Semaphore;

use super::{
    blocking::{self, Caller},
    incoming::IncomingDir,
    transfer::{NewFile, copy},
    tree::{Placed, Tree},
};
use crate::{BlobEntry, BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};

// What one store does at the same time; a disk gains nothing from more, and the runtime's threads are everybody's.
const OPERATIONS_MAX: usize = 16;

// How often a put makes its directory again after somebody removed it in between.
const RACES_MAX: u32 = 100;

/// Objects as files under one directory, shared by the processes that open it.
///
/// A put has reached the disk when it is answered, with every directory above it. Handles are cheap to clone.
#[derive(Clone, Debug)]
pub struct DirectoryStore {
    disk: Arc<Disk>,
    permits: Arc<Semaphore>,
}

#[derive(Debug)]
struct Disk {
    tree: Tree,
    incoming: IncomingDir,
}

/// A failure inside a walk: the disk's, or the end of the caller's patience.
enum WalkError {
    Disk(Errno),
    Gone(BlobError),
}

impl From<Errno> for WalkError {
    fn from(errno: Errno) -> Self {
        Self::Disk(errno)
    }
}

impl DirectoryStore {
    /// Opens the store in `root`, which is created where it is missing, and sweeps what dead writers left on its way in. Blocks for a few
    /// file operations.
    ///
    /// A directory that cannot be written, or whose file system lacks hard links or file locks, is [`BlobError::Local`] with its path.
    pub fn open(root: &Path) -> Result<Self, BlobError> {
        Self::open_as(root, true)
    }

    /// The same without waiting for the disk: a crash of the machine (not one of the process) may take away what was put. For
    /// test suites, which would spend their time on it.
    pub fn open_without_sync(root: &Path) -> Result<Self, BlobError> {
        Self::open_as(root, false)
    }

    fn open_as(root: &Path, is_synced: bool) -> Result<Self, BlobError> {
        let disk = Disk::open(root, is_synced).map_err(|source| BlobError::Local {
            action: "open a blob store in",
            path: root.to_owned(),
            source,
        })?;
        Ok(Self { disk: Arc::new(disk), permits: Arc::new(Semaphore::new(OPERATIONS_MAX)) })
    }

    async fn run<T, F>(&self, action: String, work: F) -> Result<T, BlobError>
    where
        T: Send + 'static,
        F: FnOnce(&Disk, &Caller<'_>, &str) -> Result<T, BlobError> + Send + 'static,
    {
        let disk = Arc::clone(&self.disk);
        let name = action.clone();
        blocking::run(&self.permits, action, move |caller| work(&disk, caller, &name)).await
    }
}

#[async_trait]
impl BlobStore for DirectoryStore {
    async fn put_if_absent(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError> {
        let key = key.clone();
        self.run(format!("put {key}"), move |disk, caller, action| disk.put(&key, payload, caller, action))
            .await
    }

    async fn get(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError> {
        let key = key.clone();
        self.run(format!("get {key}"), move |disk, _, action| disk.get(&key, len_max, action)).await
    }

    async fn download(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError> {
        let (key, to) = (key.clone(), to.to_owned());
        let downloaded = self
            .run(format!("download {key}"), move |disk, caller, action| {
                disk.download(&key, &to, caller, action)
            })
            .await?;
        // Kept only here: an answer that nobody takes removes its file.
        Ok(downloaded.map(|(file, len)| {
            file.keep();
            len
        }))
    }

    async fn list(&self, prefix: &BlobPrefix) -> Result<Vec<BlobEntry>, BlobError> {
        let prefix = prefix.clone();
        self.run(format!("list {prefix}"), move |disk, caller, action| {
            let step = || caller.still_waits().map_err(WalkError::Gone);
            disk.tree.list(&prefix, &step).map_err(|error| error.into_blob_error(action))
        })
        .await
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, BlobError> {
        let key = key.clone();
        self.run(format!("delete {key}"), move |disk, _, action| {
            disk.tree.remove(&key).map_err(|errno| of_errno(action, errno))
        })
        .await
    }

    async fn delete_prefix(&self, prefix: &BlobPrefix) -> Result<u64, BlobError> {
        let prefix = prefix.clone();
        self.run(format!("delete {prefix}"), move |disk, caller, action| {
            let step = || caller.still_waits().map_err(WalkError::Gone);
            disk.tree.clear(&prefix, &step).map_err(|error| error.into_blob_error(action))
        })
        .await
    }
}

impl Disk {
    fn open(root: &Path, is_synced: bool) -> io::Result<Self> {
        let objects = root.join("objects");
        let incoming = root.join("incoming");
        for dir in [&objects, &incoming] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let disk = Self {
            tree: Tree::new(open_dir(&objects)?.into(), is_synced),
            incoming: IncomingDir::new(open_dir(&incoming)?.into()),
        };
        disk.tree.probe(&disk.incoming.create()?)?;
        // The root and what was created above it; what cannot be opened was there before us.
        for dir in std::path::absolute(root)?.ancestors().map_while(|dir| open_dir(dir).ok()) {
            disk.tree.sync(dir)?;
        }
        let swept = disk.incoming.sweep()?;
        if swept > 0 {
            tracing::info!(root = %root.display(), swept, "removed what interrupted puts had left");
        }
        Ok(disk)
    }

    fn put(
        &self,
        key: &BlobKey,
        payload: Payload,
        caller: &Caller<'_>,
        action: &str,
    ) -> Result<Put, BlobError> {
        // Saves writing what would be thrown away; it is the link below that decides.
        if self.tree.holds(key).map_err(|errno| of_errno(action, errno))? {
            return Ok(Put::Exists);
        }
        let mut incoming = self.incoming.create().map_err(|errno| of_errno(action, errno))?;
        match payload {
            Payload::Bytes(bytes) => {
                incoming.file.write_all(&bytes).map_err(|error| of_io(action, &error))?;
            }
            Payload::File(path) => {
                let on_read = |source| local("read", &path, source);
                let mut from = File::open(&path).map_err(on_read)?;
                copy(caller, (&mut from, on_read), (&mut incoming.file, |error| of_io(action, &error)))?;
            }
        }
        self.tree.sync(&incoming.file).map_err(|errno| of_errno(action, errno))?;
        // Whoever dropped the put may have changed the file since, so that what was read of it must not appear.
        caller.still_waits()?;
        for _ in 0..RACES_MAX {
            match self.tree.place(&incoming, key).map_err(|errno| of_errno(action, errno))? {
                Placed::Created => return Ok(Put::Created),
                Placed::Exists => return Ok(Put::Exists),
                Placed::NameInUse => return Err(BlobError::NameInUse { key: key.to_string() }),
                Placed::Raced => {}
            }
        }
        Err(BlobError::Unavailable {
            action: action.to_owned(),
            detail: format!("its directory was removed {RACES_MAX} times in between"),
        })
    }

    fn get(&self, key: &BlobKey, len_max: u64, action: &str) -> Result<Option<Bytes>, BlobError> {
        let Some((mut file, len)) = self.tree.read(key).map_err(|errno| of_errno(action, errno))? else {
            return Ok(None);
        };
        if len > len_max {
            return Err(BlobError::TooLarge { key: key.to_string(), len, len_max });
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact(&mut bytes).map_err(|error| of_io(action, &error))?;
        Ok(Some(bytes.into()))
    }

    fn download(
        &self,
        key: &BlobKey,
        to: &Path,
        caller: &Caller<'_>,
        action: &str,
    ) -> Result<Option<(NewFile, u64)>, BlobError> {
        let Some((mut file, _)) = self.tree.read(key).map_err(|errno| of_errno(action, errno))? else {
            return Ok(None);
        };
        let on_write = |source| local("write", to, source);
        let mut new = NewFile::create(to).map_err(on_write)?;
        let len = copy(caller, (&mut file, |error| of_io(action, &error)), (&mut new.file, on_write))?;
        Ok(Some((new, len)))
    }
}

impl WalkError {
    fn into_blob_error(self, action: &str) -> BlobError {
        match self {
            Self::Disk(errno) => of_errno(action, errno),
            Self::Gone(error) => error,
        }
    }
}

fn open_dir(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?.into())
}

fn local(action: &'static str, path: &Path, source: io::Error) -> BlobError {
    BlobError::Local { action, path: path.to_owned(), source }
}

fn of_errno(action: &str, errno: Errno) -> BlobError {
    of_io(action, &errno.into())
}

fn of_io(action: &str, error: &io::Error) -> BlobError {
    use io::ErrorKind::{QuotaExceeded, StorageFull};

    match error.kind() {
        StorageFull | QuotaExceeded => BlobError::Full { action: action.to_owned() },
        _ => BlobError::Unavailable { action: action.to_owned(), detail: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ErrorCode;

    use super::*;

    #[test]
    fn a_full_disk_and_a_used_up_quota_are_told_from_a_broken_one() {
        assert_eq!(of_errno("put a", Errno::NOSPC).code(), ErrorCode::DiskFull);
        assert_eq!(of_errno("put a", Errno::DQUOT).code(), ErrorCode::DiskFull);
        assert_eq!(of_errno("put a", Errno::IO).code(), ErrorCode::BlobStoreUnavailable);
    }
}
