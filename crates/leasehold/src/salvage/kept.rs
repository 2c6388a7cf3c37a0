//! What is kept, over all replicas of a data directory.

use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use leasehold_ledger::{Salvage, ledger_path, salvages};
use leasehold_types::{LeaseKey, ReplicaId, Timestamp};

use crate::{data_dir::DataDir, error::CliError};

/// The name of a ledger that a crash left in its place: it is kept like the others once its replica opens the tenant again.
const IN_PLACE: &str = "in-place";

/// A salvage and the replica on whose disk it lies.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) replica: ReplicaId,
    pub(super) salvage: Salvage,
}

/// A tenant's salvages, the newest first.
pub(super) fn kept(
    data_dir: &DataDir,
    only: Option<&ReplicaId>,
    key: &LeaseKey,
) -> Result<Vec<Kept>, CliError> {
    let mut found = Vec::new();
    for replica in data_dir.replicas()?.into_iter().filter(|replica| only.is_none_or(|only| only == replica))
    {
        let root = data_dir.tenant_root(&replica, key);
        let left = left_in_place(&root)?;
        found.extend(
            salvages(&root)?
                .into_iter()
                .chain(left)
                .map(|salvage| Kept { replica: replica.clone(), salvage }),
        );
    }
    found.sort_by_key(|kept| std::cmp::Reverse(kept.salvage.at));
    Ok(found)
}

/// The ledger in a tenant's place, unless a replica has it open or it is among the kept ones already.
fn left_in_place(root: &Path) -> Result<Option<Salvage>, CliError> {
    let path = ledger_path(root);
    let failed = |source| CliError::Local { action: "look at", path: path.clone(), source };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    // What is kept has a second name.
    if metadata.len() == 0 || metadata.nlink() > 1 {
        return Ok(None);
    }
    // Whoever has a ledger open holds its lock; ours is gone before anything else is done.
    match File::open(&path).map_err(failed)?.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    let log = path.with_file_name("ledger.db-wal");
    let written = log.metadata().ok();
    let seconds = metadata.mtime().max(written.as_ref().map_or(i64::MIN, MetadataExt::mtime));
    Ok(Some(Salvage {
        name: IN_PLACE.to_owned(),
        bytes: metadata.len() + written.map_or(0, |log| log.len()),
        at: Timestamp::from_millis(seconds.saturating_mul(1_000)),
        epoch: None,
        path,
    }))
}
