//! What the lives of one test have in common: the stores, and a replica in this process that comes before and after them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use leasehold_blob::BlobStore;
use leasehold_lease::{Claim, LeaseStore};
use leasehold_proof::{Answered, Client, ProofError, Times, World, recorder::Recorder};
use leasehold_server::{Config, Edges, Service, Shutdown, Stores};
use leasehold_tenure::Router;
use leasehold_testkit::pass;
use leasehold_types::{Clock as _, Entropy, Epoch, LeaseKey, SystemClock};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc};

/// Short, so that a lease that nobody renews is soon free.
pub(crate) const TIMES: Times =
    Times { ttl: Duration::from_millis(1_500), margin: Duration::from_millis(300) };

/// How long whatever has no limit of its own may take. Sixteen processes at a time share a machine and its servers with other suites.
pub(crate) const LONG: Duration = Duration::from_secs(180);

/// Between two tries of what is refused for a while.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// The stores of a test, and the replica that serves before and after each life.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) leases: Arc<dyn LeaseStore>,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) recorder: Arc<Recorder>,
    /// Where the other replica answers.
    endpoint: String,
    entropy: Arc<Entropy>,
    /// The tenants of the other replica.
    pub(crate) router: Router,
    /// Its end ends that replica.
    _shutdown: mpsc::Sender<Shutdown>,
    dir: TempDir,
}

impl Stage {
    pub(crate) async fn new(world: World) -> Result<Self, ProofError> {
        Self::with_edges(world, |_, edges| Ok(edges)).await
    }

    /// A stage whose replica has other edges, made from its stores.
    pub(crate) async fn with_edges(
        world: World,
        change: impl FnOnce(&mut Stores, Edges) -> Result<Edges, ProofError>,
    ) -> Result<Self, ProofError> {
        let dir = tempfile::tempdir()?;
        let config = world.config(dir.path(), "other", TIMES)?;
        let (leases, blobs) = (world.leases(&config).await?, world.blobs(&config)?);
        let edges = Edges::system();
        let entropy = Arc::clone(&edges.entropy);
        let tokens = world.tokens(&config).await?;
        let mut stores = Stores { leases: Arc::clone(&leases), tokens, blobs: Arc::clone(&blobs) };
        let edges = change(&mut stores, edges)?;
        let listener = TcpListener::bind(config.listen_addr()).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let service = Service::build_with(config, edges, stores).await?;
        let router = service.router().clone();
        let (shutdown, told) = mpsc::channel(1);
        tokio::spawn(service.run(listener, told));
        let recorder = Arc::new(Recorder::new(Arc::new(SystemClock)));
        Ok(Self { world, leases, blobs, recorder, endpoint, entropy, router, _shutdown: shutdown, dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn config(&self, replica: &str) -> Result<Config, ProofError> {
        self.world.config(self.dir(), replica, TIMES)
    }

    /// Where a replica keeps what is a tenant's.
    pub(crate) fn root_of(&self, replica: &str, key: &LeaseKey) -> Result<PathBuf, ProofError> {
        let node = self.config(replica)?.node_dir(&replica.parse()?);
        Ok(leasehold_tenure::tenant_root(&node, key))
    }

    /// A caller of the replica in this process.
    pub(crate) fn other(&self, key: &LeaseKey) -> Result<Client, ProofError> {
        self.client(&self.endpoint, key)
    }

    pub(crate) fn client(&self, endpoint: &str, key: &LeaseKey) -> Result<Client, ProofError> {
        Client::new(endpoint, key, Arc::clone(&self.recorder))
    }

    /// Acquires the lease by hand, as a replica that goes no further.
    pub(crate) async fn claim(&self, key: &LeaseKey) -> Result<Claim, ProofError> {
        let (replica, tenure) = ("passer-by".parse()?, self.entropy.tenure_id());
        match self.leases.acquire(key, &replica, tenure, TIMES.ttl).await? {
            leasehold_lease::Acquisition::Granted(grant) => {
                Ok(Claim { key: key.clone(), replica, tenure, epoch: grant.epoch })
            }
            other => Err(format!("not granted: {other:?}").into()),
        }
    }

    /// Puts an object into an epoch of a tenant, as somebody who does not know better.
    pub(crate) async fn put(&self, key: &LeaseKey, epoch: Epoch, name: &str) -> Result<(), ProofError> {
        let object = format!("{key}/e{:08}/{name}", epoch.get()).parse()?;
        self.blobs.put_if_absent(&object, bytes::Bytes::from_static(b"left behind").into()).await?;
        Ok(())
    }
}

/// Tries `call` until it is done: what is refused is waited out. Calls whose outcome is unknown are tried again as well.
pub(crate) async fn until_done<T: std::fmt::Debug>(
    what: &str,
    mut call: impl AsyncFnMut() -> Result<Answered<T>, ProofError>,
) -> Result<T, ProofError> {
    let until = SystemClock.now().plus(LONG);
    loop {
        match call().await? {
            Answered::Done(done) => return Ok(done),
            other if SystemClock.now() >= until => {
                return Err(format!("{what} was not done within {LONG:?}: {other:?}").into());
            }
            _ => pass(TRY_EVERY).await,
        }
    }
}
