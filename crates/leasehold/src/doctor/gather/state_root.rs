//! The facts of the directory of everything that is local: what a ledger does there is done once, in a directory that goes again.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use leasehold_server::Edges;
use leasehold_types::Clock;
use rustix::fs::{StatVfsMountFlags, statfs, statvfs};
use tempfile::TempDir;

use super::{asking::Asking, file_system};
use crate::doctor::{
    check::Check,
    fact::{Fact, Failure, local},
    facts::{FileSystem, Space, StateRoot},
};

const SYNCS: usize = 8;
/// What is written: a page of SQLite's.
const WRITE: [u8; 4_096] = [7; 4_096];

pub(super) async fn gather(asking: &Asking, edges: &Edges, path: &Path) -> StateRoot {
    // Even a look at a directory hangs where a network file system does.
    let place = {
        let path = path.to_owned();
        asking.blocking("look at the data directory", move || Ok((path.is_dir(), existing(&path)))).await
    };
    let (is_there, at) = match place {
        Fact::Known(place) => place,
        Fact::Failed(failure) => return unseen(path, Fact::Failed(failure)),
        Fact::Unasked(because) => return unseen(path, Fact::Unasked(because)),
    };
    let dir = {
        let at = at.clone();
        asking
            .blocking("write in the data directory", move || {
                let failed = |error: io::Error| local(&format!("write in {}", at.display()), &error);
                let dir = temporary(&at).map_err(failed)?;
                fs::write(dir.path().join("written"), WRITE).map_err(failed)?;
                Ok(dir)
            })
            .await
    };
    let space = {
        let at = at.clone();
        asking.blocking("ask for the disk's space", move || space(&at)).await
    };
    let file_system = {
        let at = at.clone();
        asking.blocking("ask for the kind of file system", move || kind(&at)).await
    };
    let (writes, dir) = match dir {
        Fact::Known(dir) => (Fact::Known(()), Some(dir)),
        Fact::Failed(failure) => (Fact::Failed(failure), None),
        Fact::Unasked(because) => (Fact::Unasked(because), None),
    };
    let mut facts = StateRoot { is_there, space, file_system, ..unseen(path, writes) };
    if let Some(dir) = dir {
        let at = || dir.path().to_owned();
        let place = at();
        facts.hard_links = asking.blocking("make a hard link", move || hard_links(&place)).await;
        let place = at();
        facts.renames = asking.blocking("rename a file", move || renames(&place)).await;
        let place = at();
        facts.unlinks_open = asking.blocking("remove an open file", move || unlinks_open(&place)).await;
        let place = at();
        facts.locks = asking.blocking("lock a file", move || locks(&place)).await;
        let (place, clock) = (at(), Arc::clone(&edges.clock));
        facts.syncs = asking.blocking("write through to the disk", move || syncs(&place, &*clock)).await;
        // A disk that hangs may hang here too.
        let removed = asking.blocking("remove what was written", move || {
            let at = dir.path().to_owned();
            dir.close().map_err(|error| local(&format!("remove {}", at.display()), &error))
        });
        if let Fact::Failed(failure) = removed.await {
            facts.writes = Fact::Failed(failure);
        }
    }
    facts
}

/// The facts of a directory that could not even be looked at.
fn unseen(path: &Path, writes: Fact<()>) -> StateRoot {
    StateRoot {
        path: path.to_owned(),
        is_there: false,
        writes,
        space: Fact::after(Check::StateRootWritable),
        file_system: Fact::after(Check::StateRootWritable),
        hard_links: Fact::after(Check::StateRootWritable),
        renames: Fact::after(Check::StateRootWritable),
        unlinks_open: Fact::after(Check::StateRootWritable),
        locks: Fact::after(Check::StateRootWritable),
        syncs: Fact::after(Check::StateRootWritable),
    }
}

/// `path`, or the nearest directory above it that is there: what is not there would be made in it.
pub(super) fn existing(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = whole.ancestors().find(|above| above.symlink_metadata().is_ok());
    found.unwrap_or(&whole).to_owned()
}

/// A directory of our own in `at`, which goes with its guard.
pub(super) fn temporary(at: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(".leasehold-doctor-").tempdir_in(at)
}

fn space(at: &Path) -> Result<Space, Failure> {
    let found =
        statvfs(at).map_err(|errno| local(&format!("ask {} for its space", at.display()), &errno.into()))?;
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        let error = io::ErrorKind::ReadOnlyFilesystem.into();
        return Err(local(&format!("write in {}", at.display()), &error));
    }
    Ok(Space {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        // Some file systems make files as they are needed, and count none.
        free_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

fn kind(at: &Path) -> Result<FileSystem, Failure> {
    let found =
        statfs(at).map_err(|errno| local(&format!("ask {} for its kind", at.display()), &errno.into()))?;
    // A number of 32 bits, which some kernels give with a sign.
    let number = u64::try_from(i128::from(found.f_type) & 0xffff_ffff).unwrap_or(0);
    Ok(file_system::of_type(number))
}

fn written(dir: &Path, name: &str) -> io::Result<PathBuf> {
    let path = dir.join(name);
    fs::write(&path, WRITE)?;
    Ok(path)
}

/// What was expected of the file system and did not come.
fn otherwise(what: &str) -> io::Error {
    io::Error::other(format!("the file system does something else: {what}"))
}

fn hard_links(dir: &Path) -> Result<(), Failure> {
    let check = || {
        let path = written(dir, "linked")?;
        let link = dir.join("link");
        fs::hard_link(&path, &link)?;
        fs::remove_file(&path)?;
        if fs::read(&link)? == WRITE {
            Ok(())
        } else {
            Err(otherwise("a link without what it was linked to"))
        }
    };
    check().map_err(|error: io::Error| {
        let Failure { what, next } =
            local("make a hard link, by which a tail is kept that a crash left", &error);
        Failure { what, next: format!("{next} with hard links") }
    })
}

fn renames(dir: &Path) -> Result<(), Failure> {
    let check = || {
        let (from, to) = (written(dir, "from")?, dir.join("to"));
        fs::write(&to, b"old")?;
        fs::rename(&from, &to)?;
        if fs::read(&to)? == WRITE && !from.exists() {
            Ok(())
        } else {
            Err(otherwise("a rename that replaces nothing"))
        }
    };
    check().map_err(|error: io::Error| local("replace a file by a rename", &error))
}

fn unlinks_open(dir: &Path) -> Result<(), Failure> {
    let check = || {
        let path = written(dir, "open")?;
        let mut file = File::open(&path)?;
        fs::remove_file(&path)?;
        let mut read = Vec::new();
        file.read_to_end(&mut read)?;
        if read == WRITE && !path.exists() {
            Ok(())
        } else {
            Err(otherwise("a removed file that is not read on"))
        }
    };
    check().map_err(|error: io::Error| local("read a file on that was removed", &error))
}

fn locks(dir: &Path) -> Result<bool, Failure> {
    let check = || {
        let path = written(dir, "locked")?;
        let (first, second) = (File::open(&path)?, File::open(&path)?);
        first.lock()?;
        match second.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(true),
            Ok(()) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    };
    check().map_err(|error: io::Error| local("lock a file", &error))
}

fn syncs(dir: &Path, clock: &dyn Clock) -> Result<Vec<Duration>, Failure> {
    let check = || {
        let mut file = File::create(dir.join("synced"))?;
        let mut took = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let began = clock.now();
            file.write_all(&WRITE)?;
            file.sync_data()?;
            took.push(clock.now().since(began));
        }
        Ok(took)
    };
    check().map_err(|error: io::Error| local("write through to the disk", &error))
}

#[cfg(test)]
mod tests {
    use leasehold_types::SystemClock;

    use super::*;

    #[test]
    fn a_disk_does_all_of_it() {
        let dir = temporary(&std::env::temp_dir()).unwrap();
        hard_links(dir.path()).unwrap();
        renames(dir.path()).unwrap();
        unlinks_open(dir.path()).unwrap();
        assert!(locks(dir.path()).unwrap());
        assert_eq!(syncs(dir.path(), &SystemClock).unwrap().len(), SYNCS);
        assert!(space(dir.path()).unwrap().free_bytes > 0);
        kind(dir.path()).unwrap();
    }

    #[test]
    fn what_is_not_there_is_looked_for_above() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(existing(&dir.path().join("a/b/c")), dir.path());
        assert_eq!(existing(dir.path()), dir.path());
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        // A file is in the way, and is what fails.
        assert_eq!(existing(&file.join("data")), file);
        assert!(temporary(&file).is_err());
        assert!(existing(Path::new("no/such/place")).is_dir());
    }

    #[test]
    fn a_place_that_is_not_there_fails_by_its_name() {
        let nowhere = Path::new("/nowhere/at/all");
        assert!(space(nowhere).unwrap_err().what.contains("/nowhere/at/all"));
        assert!(kind(nowhere).unwrap_err().what.contains("/nowhere/at/all"));
        for failure in [
            hard_links(nowhere).unwrap_err(),
            renames(nowhere).unwrap_err(),
            unlinks_open(nowhere).unwrap_err(),
            locks(nowhere).unwrap_err(),
            syncs(nowhere, &SystemClock).unwrap_err(),
        ] {
            assert!(failure.what.contains("failed to"), "{failure:?}");
        }
    }
}
