//! Everything at once: the database, the container and the disk beside each other.

use std::{sync::Arc, time::Duration};

use leasehold_blob::{AzureOptions, AzureStore, DirectoryStore};
use leasehold_lease::{HeldOptions, KeeperOptions, PostgresOptions};
use leasehold_server::{BackendPair, Config, ConfigError, Edges};

use super::{asking::Asking, container, derivation_key, embedded, postgres, probes::Probes, state_root, tls};
use crate::{
    descriptors,
    doctor::{
        fact::Fact,
        facts::{Backends, Cloud, Facts, Settings},
    },
    error::CliError,
};

/// Connections by which a replica renews, beside its pool.
const RENEWAL_CONNECTIONS: usize = 2;

/// What is to be looked at.
pub(in crate::doctor) struct Gathering {
    config: Config,
    edges: Edges,
    asking: Asking,
    probes: Probes,
    pair: Pair,
}

enum Pair {
    Embedded,
    Cloud { postgres: Box<PostgresOptions>, azure: Box<AzureOptions>, pool_max: usize },
}

impl Gathering {
    /// By a configuration that was checked. Nothing is asked yet.
    pub(in crate::doctor) fn new(config: Config, edges: Edges, limit: Duration) -> Result<Self, CliError> {
        let pair = match config.pair().map_err(start)? {
            BackendPair::Embedded => Pair::Embedded,
            BackendPair::Cloud { postgres, azure } => Pair::Cloud {
                postgres: Box::new(postgres.options().map_err(start)?),
                azure: Box::new(azure.options(&edges).map_err(start)?),
                pool_max: postgres.pool_max,
            },
        };
        let probes = Probes::new(&edges.entropy)?;
        let asking = Asking { limit, timer: Arc::clone(&edges.timer) };
        Ok(Self { config, edges, asking, probes, pair })
    }

    /// Asks everything. Dropped in the middle, it leaves its probes to [`clean`](Self::clean).
    pub(in crate::doctor) async fn facts(&self) -> Result<Facts, CliError> {
        let Self { config, edges, asking, probes, pair } = self;
        let local = state_root::gather(asking, edges, &config.data_dir);
        let (backends, bound_to, state_root) = match pair {
            Pair::Embedded => {
                // One after the other: both write where the other one looks.
                let state_root = local.await;
                let (embedded, bound_to) = embedded::gather(asking, config, probes).await;
                (Backends::Embedded(Box::new(embedded)), bound_to, state_root)
            }
            Pair::Cloud { postgres, azure, .. } => {
                let ((postgres, bound_to), container, state_root) = tokio::join!(
                    postgres::gather(asking, edges, (**postgres).clone()),
                    container::gather(asking, edges, (**azure).clone(), probes),
                    local,
                );
                (Backends::Cloud(Box::new(Cloud { postgres, container })), bound_to, state_root)
            }
        };
        let derivation_key = derivation_key::gather(asking, config.derivation_key_path(), bound_to).await;
        let tls = tls::gather(asking, config, edges).await;
        Ok(Facts {
            serving: config.check_serving().into(),
            settings: self.settings()?,
            backends,
            state_root,
            derivation_key,
            tls,
        })
    }

    /// Removes the probes of a gathering that was interrupted, as far as that goes.
    pub(in crate::doctor) async fn clean(&self) {
        match &self.pair {
            Pair::Embedded => {
                let root = self.config.store_dir();
                let opened = self.asking.blocking("open the store", move || {
                    Ok(if root.is_dir() { Some(DirectoryStore::open(&root)?) } else { None })
                });
                if let Fact::Known(Some(store)) = opened.await {
                    self.probes.clean(&self.asking, &store).await;
                }
            }
            Pair::Cloud { azure, .. } => {
                if let Ok(store) = AzureStore::connect((**azure).clone()) {
                    self.probes.clean(&self.asking, &store).await;
                }
            }
        }
    }

    fn settings(&self) -> Result<Settings, CliError> {
        let Config { ttl, margin, renew_every, limits, .. } = &self.config;
        let unusable = |error: leasehold_lease::LeaseTimesError| {
            start(ConfigError::Unusable { key: "ttl", detail: error.to_string() })
        };
        let held = HeldOptions::new(*ttl, *margin).map_err(unusable)?;
        let connections = match &self.pair {
            Pair::Embedded => 0,
            Pair::Cloud { pool_max, .. } => pool_max + RENEWAL_CONNECTIONS,
        };
        Ok(Settings {
            ttl: *ttl,
            margin: *margin,
            renew_every: renew_every.unwrap_or_else(|| KeeperOptions::new(held).every()),
            connections_of_a_replica: u32::try_from(connections).unwrap_or(u32::MAX),
            import_bytes_max: limits.import_bytes_max,
            too_few_files: descriptors::too_few(descriptors::obtainable(), &self.config),
        })
    }
}

fn start(error: ConfigError) -> CliError {
    leasehold_server::StartError::from(error).into()
}
