//! What is kept, over all replicas of a data directory.

use leasehold_ledger::{Salvage, salvages};
use leasehold_types::{LeaseKey, ReplicaId};

use crate::{data_dir::DataDir, error::CliError};

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
        let salvages = salvages(&data_dir.tenant_root(&replica, key))?;
        found.extend(salvages.into_iter().map(|salvage| Kept { replica: replica.clone(), salvage }));
    }
    found.sort_by_key(|kept| std::cmp::Reverse(kept.salvage.at));
    Ok(found)
}
