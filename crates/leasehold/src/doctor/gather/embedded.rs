//! The embedded pair's facts.

use std::path::{Path, PathBuf};

use leasehold_blob::DirectoryStore;
use leasehold_lease::SqliteLeaseStore;
use leasehold_server::Config;

use super::{asking::Asking, probes::Probes, state_root};
use crate::doctor::{
    check::Check,
    fact::{Fact, Failure, local},
    facts::{Embedded, Probed},
};

/// The pair's facts, and the fingerprint that the leases were bound to.
pub(super) async fn gather(
    asking: &Asking,
    config: &Config,
    probes: &Probes,
) -> (Embedded, Fact<Option<String>>) {
    let path = config.leases_path();
    let leases =
        asking.blocking("look at the lease file", move || Ok(SqliteLeaseStore::inspect(&path)?)).await;
    let boot = asking.blocking("read the machine's boot id", || Ok(SqliteLeaseStore::boot()?)).await;
    let bound_to = match &leases {
        Fact::Known(found) => {
            Fact::Known(found.as_ref().and_then(|found| found.derivation_fingerprint.clone()))
        }
        _ => Fact::after(Check::LeasesFile),
    };
    let store = store(asking, config, probes).await;
    (Embedded { leases, boot, store }, bound_to)
}

/// The store that is there is probed; where there is none, one on the same disk that goes again.
async fn store(asking: &Asking, config: &Config, probes: &Probes) -> Probed {
    let (root, data_dir) = (config.store_dir(), config.data_dir.clone());
    let opened = asking.blocking("open the store", move || open(&root, &data_dir)).await;
    match opened {
        Fact::Known((store, dir)) => {
            let mut found = probes.probe(asking, &store).await;
            found.cleaned = probes.clean(asking, &store).await;
            // It takes its directory along only now.
            drop(dir);
            found
        }
        Fact::Failed(failure) => {
            let unasked = Probed::unasked(probes.prefix.as_str(), "store.put_if_absent failed");
            Probed { puts: Fact::Failed(failure), ..unasked }
        }
        Fact::Unasked(because) => Probed::unasked(probes.prefix.as_str(), &because),
    }
}

fn open(root: &Path, data_dir: &Path) -> Result<(DirectoryStore, Option<tempfile::TempDir>), Failure> {
    if root.is_dir() {
        return Ok((DirectoryStore::open(root)?, None));
    }
    let at: PathBuf = state_root::existing(data_dir);
    let dir =
        state_root::temporary(&at).map_err(|error| local(&format!("write in {}", at.display()), &error))?;
    let store = DirectoryStore::open(dir.path())?;
    Ok((store, Some(dir)))
}
