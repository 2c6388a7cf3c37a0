//! Putting a replica together.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use leasehold_blob::{BlobStore, DirectoryStore};
use leasehold_lease::{LeaseStore, SqliteLeaseStore, TokenStore, TokioTimer};
use leasehold_ledger::{LedgerOptions, Memory, SharedMemory};
use leasehold_tenure::{Backends, Router, RouterOptions, TenureEvent};
use leasehold_types::{Clock, Entropy, NoPoints, Points, ReplicaId, SystemClock, Timer};
use tokio::sync::Semaphore;

use super::{
    cloud,
    derivation::derivation_key,
    memory::{request_memory_max, sql_memory_max},
    node::{NodeLock, take_replica},
};
use crate::{
    Config, StartError,
    app::App,
    auth::Knowledge,
    bounds::Bound,
    config::BackendPair,
    forward::Forwarding,
    memory::Budget,
    metering::Metering,
    metrics::Metrics,
    panics::watch_panics,
    placement::{Departures, Survey},
    private_dir,
    stage::{LastHeard, StageCell},
};

/// Time, randomness and who is told of each step, handed in.
#[derive(Clone, Debug)]
pub struct Edges {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The timers.
    pub timer: Arc<dyn Timer>,
    /// Ids and jitter.
    pub entropy: Arc<Entropy>,
    /// Who is told of each step of an opening, a publish, a handoff, a forget, a sweep and a renewal.
    pub points: Arc<dyn Points>,
}

impl Edges {
    /// The machine's, with nobody told.
    #[must_use]
    pub fn system() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            timer: Arc::new(TokioTimer),
            entropy: Arc::new(Entropy::system()),
            points: Arc::new(NoPoints),
        }
    }
}

/// Where leases and images live.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Who holds a tenant.
    pub leases: Arc<dyn LeaseStore>,
    /// Which services are known.
    pub tokens: Arc<dyn TokenStore>,
    /// Where images live.
    pub blobs: Arc<dyn BlobStore>,
}

impl Stores {
    /// Those that `config` names. The cloud pair's tables are brought to this build's version first, unless `config` says not to; a store
    /// that is away is asked again for half a minute.
    pub async fn open(config: &Config, edges: &Edges) -> Result<Self, StartError> {
        match config.pair()? {
            BackendPair::Embedded => Self::embedded(config, edges),
            BackendPair::Cloud { postgres, azure } => cloud::open(postgres, azure, edges).await,
        }
    }

    /// The embedded ones in the data directory, which every process of this machine may share.
    pub fn embedded(config: &Config, edges: &Edges) -> Result<Self, StartError> {
        let failed = |source| StartError::Local { action: "create", path: config.data_dir.clone(), source };
        private_dir::make(&config.data_dir).map_err(failed)?;
        private_dir::make_own(&config.store_dir()).map_err(failed)?;
        let leases = Arc::new(SqliteLeaseStore::open(&config.leases_path(), Arc::clone(&edges.clock))?);
        Ok(Self {
            tokens: Arc::clone(&leases) as Arc<dyn TokenStore>,
            leases,
            blobs: Arc::new(DirectoryStore::open(&config.store_dir())?),
        })
    }
}

/// A replica that is put together and not yet served.
#[derive(Debug)]
pub struct Service {
    pub(super) app: App,
    /// Held until the run has ended.
    pub(super) lock: NodeLock,
}

impl Service {
    /// Opens the stores of `config` and takes the replica's id. Nothing is announced and no tenant is opened yet.
    ///
    /// It is for a process that serves: it also bounds the memory that SQL may take in all of it, to half of what the machine
    /// or the container has, and has its panics counted and told by [`watch_panics`].
    pub async fn build(config: Config) -> Result<Self, StartError> {
        watch_panics();
        leasehold_ledger::limit_memory(sql_memory_max()).map_err(StartError::Memory)?;
        let edges = Edges::system();
        config.check()?;
        config.check_serving()?;
        temporary_files(&absolute(&config.data_dir)?)?;
        let stores = Stores::open(&config, &edges).await?;
        Self::build_with(config, edges, stores).await
    }

    /// The same with these edges and stores, for a program that embeds the service and bounds its memory itself. That others share the
    /// stores from other machines is what `config` says: by naming the cloud pair.
    pub async fn build_with(mut config: Config, edges: Edges, stores: Stores) -> Result<Self, StartError> {
        config.check()?;
        config.check_serving()?;
        let is_embedded = matches!(config.pair()?, BackendPair::Embedded);
        config.data_dir = absolute(&config.data_dir)?;
        let Stores { leases, blobs, .. } = stores.clone();
        let (replica, lock) = take_replica(&config)?;
        let node_dir = config.node_dir(&replica);
        let scratch = fresh_scratch(&node_dir)?;
        let maker = is_embedded.then_some(edges.entropy.as_ref());
        let derivation = derivation_key(&config.derivation_key_path(), maker, leases.as_ref()).await?;
        let knowledge = Knowledge::of(&config, &stores, &derivation, edges.timer.as_ref()).await?;
        let metrics = Arc::new(Metrics::new());
        let backends = Backends {
            leases: Arc::clone(&leases),
            blobs: Arc::clone(&blobs),
            clock: Arc::clone(&edges.clock),
            timer: Arc::clone(&edges.timer),
            entropy: Arc::clone(&edges.entropy),
            points: edges.points,
        };
        let departures = Arc::new(Departures::default());
        let told = (Arc::clone(&metrics), Arc::clone(&departures));
        let bytes_max = config.limits.memory_bytes_max.unwrap_or_else(request_memory_max);
        let memory = Arc::new(Budget::new(bytes_max, metrics.memory.clone()));
        let mut options = router_options(&config, node_dir, replica.clone(), told);
        options.ledger.limits.memory = SharedMemory::new(Arc::clone(&memory) as Arc<dyn Memory>);
        let router = Router::new(options, backends)?;
        let forwarding = Forwarding::new(&config, &replica, &edges.clock, &edges.timer)?;
        let tls = config.tls.listener()?;
        if let Some(tls) = &tls {
            metrics.tls.ends(tls.not_after());
        }
        if let Some(said) = config.warning_of_tokens_in_clear() {
            tracing::warn!("{said}");
        }
        let slack = config.placement.slack()?;
        let limits = &config.limits;
        let app = App {
            instance: edges.entropy.uuid(),
            endpoint: config.endpoint.clone().unwrap_or_default(),
            replica,
            router,
            leases,
            blobs,
            clock: Arc::clone(&edges.clock),
            timer: edges.timer,
            entropy: edges.entropy,
            derivation,
            knowledge,
            metrics,
            stage: StageCell::default(),
            heard: LastHeard::default(),
            is_alone_with_its_id: is_embedded,
            in_flight: Bound::new(
                "requests are at work",
                limits.in_flight_max,
                limits.in_flight_per_tenant_max,
            ),
            metering: Metering::new(limits, &edges.clock),
            memory,
            followers: Bound::new(
                "streams are open",
                config.follow.followers_max,
                config.follow.followers_per_tenant_max,
            ),
            parked: Semaphore::new(limits.parked_max.min(Semaphore::MAX_PERMITS)),
            tls,
            forwarding,
            survey: Survey::default(),
            slack,
            departures,
            scratch,
            config,
        };
        Ok(Self { app, lock })
    }

    /// Which replica this is.
    #[must_use]
    pub fn replica(&self) -> &ReplicaId {
        &self.app.replica
    }

    /// The configuration, its data directory made absolute.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.app.config
    }

    /// The router, for a program that embeds the service.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.app.router
    }
}

fn router_options(
    config: &Config,
    state_root: PathBuf,
    replica: ReplicaId,
    (metrics, departures): (Arc<Metrics>, Arc<Departures>),
) -> RouterOptions {
    let limits = &config.limits;
    let mut ledger = LedgerOptions::default();
    ledger.limits.statement_time = limits.statement_time_max;
    ledger.limits.rows_max = limits.rows_max.max(limits.page_events_max as usize);
    ledger.limits.result_bytes_max = limits.result_bytes_max;
    ledger.limits.batch_events_max = limits.batch_events_max;
    ledger.limits.batch_bytes_max = limits.body_bytes_max;
    ledger.limits.file_bytes_max = Some(limits.ledger_bytes_max);
    // A sort of all that a ledger has takes two or three; what is told apart at random writes its pages again and again.
    ledger.limits.temp_bytes_max = limits.ledger_bytes_max.saturating_mul(8);
    let observer = move |event: &TenureEvent| {
        metrics.observe(event);
        if let TenureEvent::Released { key, flushed, .. } = event {
            departures.released(key, *flushed);
        }
    };
    RouterOptions {
        ttl: config.ttl,
        margin: config.margin,
        renew_every: config.renew_every,
        snapshot_every: config.snapshot.every,
        unflushed_bytes_max: config.snapshot.unflushed_bytes_max,
        drain_timeout: config.drain_timeout,
        close_concurrency: config.snapshot.close_concurrency,
        idle_after: config.idle_after,
        uploads_max: config.snapshot.uploads_max,
        upload_timeout: config.snapshot.upload_timeout,
        open_tenants_max: limits.open_tenants_max,
        ledger,
        observer: Some(Arc::new(observer)),
        ..RouterOptions::new(state_root, replica)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, StartError> {
    std::path::absolute(path).map_err(|source| StartError::Local {
        action: "find",
        path: path.to_owned(),
        source,
    })
}

/// Has `SQLite` keep its temporary files beside the ledgers, where an image without anything else has room too. They are nameless, so
/// that processes on one data directory are not in each other's way and nothing stays.
fn temporary_files(data_dir: &Path) -> Result<(), StartError> {
    let path = data_dir.join("tmp");
    let failed = |source| StartError::Local { action: "create", path: path.clone(), source };
    private_dir::make(data_dir).map_err(failed)?;
    private_dir::make_own(&path).map_err(failed)?;
    leasehold_ledger::keep_temporary_files_in(&path).map_err(StartError::Memory)
}

/// The scratch directory, empty: what a crash left in it belongs to nobody.
fn fresh_scratch(node_dir: &Path) -> Result<PathBuf, StartError> {
    let path = Config::scratch_dir(node_dir);
    let failed = |action: &'static str, source| StartError::Local { action, path: path.clone(), source };
    match std::fs::remove_dir_all(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => return Err(failed("empty", source)),
        _ => {}
    }
    std::fs::create_dir_all(&path).map_err(|source| failed("create", source))?;
    Ok(path)
}
