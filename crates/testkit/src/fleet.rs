//! A fleet of replicas in one process, over one pair of backends with faults in between.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_blob::{BlobPrefix, BlobStore};
use leasehold_lease::{LeaseStore, TokioTimer};
use leasehold_snapshot::Retry;
use leasehold_tenure::{Backends, Observer, Router, RouterOptions, TenureEvent};
use leasehold_types::{Clock, DerivationKey, Entropy, LeaseKey, NoPoints, ReplicaId, SystemClock, TenantId};
use tempfile::TempDir;

use crate::{Events, FaultyBlobs, FaultyLeases, ManualClock, Pair, alone::Turn};

/// How long a lease runs in a fleet whose time is moved by hand (contract.md).
pub const TTL: Duration = Duration::from_secs(10);

/// How much of it is never counted on (contract.md).
pub const MARGIN: Duration = Duration::from_secs(2);

const RETRY: Retry =
    Retry { tries: 2, wait_first: Duration::from_millis(10), wait_max: Duration::from_millis(10) };

/// Replicas that share a pair of backends. Cloning it gives the same fleet, for the hooks of a fault.
pub struct Fleet<P> {
    shared: Arc<Shared<P>>,
}

struct Shared<P> {
    pair: P,
    leases: Arc<FaultyLeases>,
    blobs: Arc<FaultyBlobs>,
    ttl: Duration,
    margin: Duration,
    /// The clocks of the replicas so far; `None` where time is real.
    clocks: Option<Mutex<Vec<ManualClock>>>,
    /// What the next replica's randomness is seeded with.
    seed: AtomicU64,
    dir: TempDir,
    /// Held as long as the fleet: a fleet in real time runs alone.
    _turn: Turn,
}

impl<P> Clone for Fleet<P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<P> fmt::Debug for Fleet<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("dir", &self.shared.dir.path()).finish_non_exhaustive()
    }
}

/// One replica of a fleet.
#[derive(Clone, Debug)]
pub struct Replica {
    /// Its router.
    pub router: Router,
    /// Its own clock, which the fleet moves with all others and a test can move alone. Stands still, unread, in a fleet
    /// in real time.
    pub clock: ManualClock,
    /// What its observer was told.
    pub events: Events,
    /// Where its tenants' files are.
    pub state_root: PathBuf,
}

impl Replica {
    /// The directory of a tenant on this replica.
    #[must_use]
    pub fn tenant_root(&self, key: &LeaseKey) -> PathBuf {
        leasehold_tenure::tenant_root(&self.state_root, key)
    }

    /// The ledger file of a tenant on this replica.
    #[must_use]
    pub fn ledger_file(&self, key: &LeaseKey) -> PathBuf {
        leasehold_ledger::ledger_path(&self.tenant_root(key))
    }
}

impl<P: Pair> Fleet<P> {
    /// A fleet whose time is moved by hand: ttl 10 s, margin 2 s, no renewals and no timed snapshots. Timers are the
    /// machine's, so that what bounds a wait in the product still bounds it.
    pub async fn manual() -> Self {
        let turn = Turn::shared().await;
        let pair = P::manual().await;
        Self::over(pair, TTL, MARGIN, Some(Mutex::default()), turn)
    }

    /// A fleet in real time, with renewals. It runs alone: at once with no other fleet of the process.
    pub async fn real_time(ttl: Duration, margin: Duration) -> Self {
        let turn = Turn::alone().await;
        let pair = P::real_time().await;
        Self::over(pair, ttl, margin, None, turn)
    }

    /// The same over a pair that the test has made.
    pub async fn manual_over(pair: P) -> Self {
        Self::over(pair, TTL, MARGIN, Some(Mutex::default()), Turn::shared().await)
    }

    /// The same over a pair that the test has made.
    pub async fn real_time_over(pair: P, ttl: Duration, margin: Duration) -> Self {
        Self::over(pair, ttl, margin, None, Turn::alone().await)
    }

    /// The pair of backends, past all faults.
    #[must_use]
    pub fn pair(&self) -> &P {
        &self.shared.pair
    }

    fn over(
        pair: P,
        ttl: Duration,
        margin: Duration,
        clocks: Option<Mutex<Vec<ManualClock>>>,
        turn: Turn,
    ) -> Self {
        let leases = Arc::new(FaultyLeases::new(pair.leases()));
        let blobs = Arc::new(FaultyBlobs::new(pair.blobs()));
        let dir = tempfile::tempdir().expect("a directory for the replicas' state");
        let seed = AtomicU64::new(1);
        Self { shared: Arc::new(Shared { pair, leases, blobs, ttl, margin, clocks, seed, dir, _turn: turn }) }
    }

    /// The lease store's faults.
    #[must_use]
    pub fn leases(&self) -> &FaultyLeases {
        &self.shared.leases
    }

    /// The blob store's faults.
    #[must_use]
    pub fn blobs(&self) -> &FaultyBlobs {
        &self.shared.blobs
    }

    /// A replica with the fleet's defaults and a state root of its own.
    #[must_use]
    pub fn replica(&self, id: &str) -> Replica {
        self.replica_with(id, |_| ())
    }

    /// A replica with options of its own.
    pub fn replica_with(&self, id: &str, adjust: impl FnOnce(&mut RouterOptions)) -> Replica {
        self.start(id, id, adjust)
    }

    /// A replica that was given another one's state root by mistake.
    #[must_use]
    pub fn replica_sharing(&self, id: &str, node_of: &str) -> Replica {
        self.start(id, node_of, |_| ())
    }

    fn start(&self, id: &str, node: &str, adjust: impl FnOnce(&mut RouterOptions)) -> Replica {
        let clock = ManualClock::new();
        let events = Events::default();
        let options = self.options(id, node, &events, adjust);
        let state_root = options.state_root.clone();
        let router = Router::new(options, self.backends(&clock)).expect("options that are valid");
        if let Some(clocks) = &self.shared.clocks {
            clocks.lock().unwrap_or_else(PoisonError::into_inner).push(clock.clone());
        }
        Replica { router, clock, events, state_root }
    }

    /// The options of a replica: the fleet's defaults, then `adjust`, with the observer told after the recorder.
    pub fn options(
        &self,
        id: &str,
        node: &str,
        events: &Events,
        adjust: impl FnOnce(&mut RouterOptions),
    ) -> RouterOptions {
        let replica: ReplicaId = id.parse().expect("a replica id");
        let mut options = RouterOptions::new(self.shared.dir.path().join("nodes").join(node), replica);
        options.ttl = self.shared.ttl;
        options.margin = self.shared.margin;
        options.auto_renew = self.shared.clocks.is_none();
        options.snapshot_every = Duration::ZERO;
        // Repeats are the snapshot crate's to test; here an outage is an outage.
        options.snapshot.retry = RETRY;
        adjust(&mut options);
        let (recorder, theirs) = (events.clone(), options.observer.take());
        let observer: Observer = Arc::new(move |event: &TenureEvent| {
            recorder.record(event);
            if let Some(observer) = &theirs {
                observer(event);
            }
        });
        options.observer = Some(observer);
        options
    }

    /// What a replica whose clock is `clock` stands on.
    #[must_use]
    pub fn backends(&self, clock: &ManualClock) -> Backends {
        Backends {
            leases: self.shared.leases.clone(),
            blobs: self.shared.blobs.clone(),
            clock: self.clock_or_real(clock),
            timer: Arc::new(TokioTimer),
            entropy: self.entropy(),
            points: Arc::new(NoPoints),
        }
    }

    /// The lease store with its faults, as the product takes it.
    #[must_use]
    pub fn lease_store(&self) -> Arc<dyn LeaseStore> {
        self.shared.leases.clone()
    }

    /// The blob store with its faults, as the product takes it.
    #[must_use]
    pub fn blob_store(&self) -> Arc<dyn BlobStore> {
        self.shared.blobs.clone()
    }

    /// The blob store past all faults, for a test that plays somebody else's part in it.
    #[must_use]
    pub fn store_behind(&self) -> Arc<dyn BlobStore> {
        self.shared.pair.blobs()
    }

    /// A directory of this fleet that no replica uses.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.shared.dir.path().join("scratch")
    }

    /// Time passes everywhere: in the lease store and on every replica's own clock.
    pub async fn advance(&self, by: Duration) {
        let clocks = self.shared.clocks.as_ref().expect("a fleet whose time is moved by hand");
        self.shared.pair.advance(by).await;
        for clock in clocks.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            clock.advance(by);
        }
    }

    /// Time passes until every lease that is held now has run out.
    pub async fn outlive_leases(&self) {
        self.advance(self.shared.ttl + Duration::from_millis(1)).await;
    }

    /// The names of what the store holds under `prefix`, past all faults.
    pub async fn stored(&self, prefix: &str) -> Vec<String> {
        let prefix: BlobPrefix = prefix.parse().expect("a prefix that ends on a segment");
        let entries = self.store_behind().list(&prefix).await.expect("the store behind the faults");
        entries.into_iter().map(|entry| entry.key.to_string()).collect()
    }

    /// The names of what the store holds of a tenant, past all faults.
    pub async fn stored_of(&self, key: &LeaseKey) -> Vec<String> {
        self.stored(&format!("{key}/")).await
    }

    /// Puts an object past all faults, as somebody who does not know of the fleet would.
    pub async fn put(&self, name: &str, bytes: impl Into<bytes::Bytes>) {
        let key = name.parse().expect("an object key");
        let payload = bytes.into().into();
        let put = self.store_behind().put_if_absent(&key, payload).await;
        assert_eq!(put.expect("the store behind the faults"), leasehold_blob::Put::Created, "{name}");
    }

    fn clock_or_real(&self, clock: &ManualClock) -> Arc<dyn Clock> {
        if self.shared.clocks.is_some() { Arc::new(clock.clone()) } else { Arc::new(SystemClock) }
    }

    fn entropy(&self) -> Arc<Entropy> {
        Arc::new(Entropy::seeded(self.shared.seed.fetch_add(1, Ordering::Relaxed)))
    }
}

/// A tenant of the organization `acme`, derived as a service derives it.
#[must_use]
pub fn tenant(subject: &str) -> LeaseKey {
    let id: TenantId = DerivationKey::new([9; 32]).tenant("https://idp.example/acme", subject);
    LeaseKey::new("acme".parse().expect("a slug"), id)
}
