//! What every request reaches: the router, the stores, the bounds.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use leasehold_blob::BlobStore;
use leasehold_lease::{Announcement, LeaseRow, LeaseStore};
use leasehold_tenure::{Handle, Router, TenureError};
use leasehold_types::{Clock, DerivationKey, Entropy, Epoch, ErrorCode, LeaseKey, ReplicaId, Timer};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::{
    auth::{Knowledge, audit_creation},
    bounds::Bound,
    config::Config,
    forward::Forwarding,
    memory::Budget,
    metering::Metering,
    metrics::Metrics,
    patience::Patience,
    placement::{Departures, Slack, Survey},
    problem::Problem,
    stage::{LastHeard, Stage, StageCell},
    tls::ListenerTls,
};

pub(crate) type AppState = Arc<App>;

/// The first wait of a parked request; each further one is twice as long.
pub(crate) const PARKED_WAIT_MIN: Duration = Duration::from_millis(5);
/// The longest wait of a parked request between two attempts.
pub(crate) const PARKED_WAIT_MAX: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) replica: ReplicaId,
    /// One id for this process.
    pub(crate) instance: Uuid,
    /// Where others reach this replica.
    pub(crate) endpoint: String,
    pub(crate) router: Router,
    pub(crate) leases: Arc<dyn LeaseStore>,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) entropy: Arc<Entropy>,
    pub(crate) derivation: DerivationKey,
    /// By what callers are known.
    pub(crate) knowledge: Knowledge,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stage: StageCell,
    /// When the lease store last took what this replica says of itself.
    pub(crate) heard: LastHeard,
    /// Whether the node's lock proves that nobody else is this replica: whoever reaches the stores shares the data directory.
    pub(crate) is_alone_with_its_id: bool,
    /// Requests at work.
    pub(crate) in_flight: Arc<Bound>,
    /// How much each caller asks, and how much is asked of each tenant.
    pub(crate) metering: Metering,
    /// What requests may hold of the memory.
    pub(crate) memory: Arc<Budget>,
    /// Event streams.
    pub(crate) followers: Arc<Bound>,
    /// One permit for each request that waits for its tenant to settle.
    pub(crate) parked: Semaphore,
    /// The listener's certificate, where it has one.
    pub(crate) tls: Option<ListenerTls>,
    /// The way to the other replicas, where the fleet has a secret.
    pub(crate) forwarding: Option<Forwarding>,
    /// What is known of the fleet.
    pub(crate) survey: Survey,
    /// How far above the even share a replica may be.
    pub(crate) slack: Slack,
    /// The tenants that leave with this replica.
    pub(crate) departures: Arc<Departures>,
    /// Files of exports and imports under way; emptied at each start.
    pub(crate) scratch: PathBuf,
}

/// What opening may do with a tenant that is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opening {
    /// Create it, a forgotten one too (`PUT`).
    Create,
    /// Create an unknown one; a forgotten one stays forgotten (appending, executing).
    CreateUnlessForgotten,
    /// Never create (reading).
    Existing,
}

impl App {
    /// The tenant, opened here.
    pub(crate) async fn open(
        &self,
        key: &LeaseKey,
        opening: Opening,
        patience: Patience,
    ) -> Result<Handle, Problem> {
        self.serve(key, opening, patience, |handle| std::future::ready(Ok(handle))).await
    }

    /// Does `work` on the tenant, opening it where need be.
    ///
    /// While the tenant moves on this replica the request is parked: what was refused with `draining` or `fenced` and executed nothing
    /// is asked again, as long as the caller's patience lasts and there is room (design.md section 6).
    pub(crate) async fn serve<T, F, Fut>(
        &self,
        key: &LeaseKey,
        opening: Opening,
        patience: Patience,
        work: F,
    ) -> Result<T, Problem>
    where
        F: Fn(Handle) -> Fut,
        Fut: Future<Output = Result<T, TenureError>>,
    {
        let mut place = None;
        let mut wait = PARKED_WAIT_MIN;
        loop {
            let error = match self.attempt(key, opening, patience, &work).await? {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let moving = self.is_moving(&error);
            let left = patience.left(self.clock.as_ref());
            if !moving || left.is_zero() || self.stage.get() == Stage::Draining {
                return Err(Problem::from(error).of(key));
            }
            if place.is_none() {
                place = self.parked.try_acquire().ok();
            }
            if place.is_none() {
                return Err(Problem::from(error).of(key));
            }
            self.timer.sleep(wait.min(left)).await;
            wait = (wait * 2).min(PARKED_WAIT_MAX);
        }
    }

    /// Whether an error executed nothing and asking again soon is likely to do better.
    fn is_moving(&self, error: &TenureError) -> bool {
        match error {
            // The process before this one had it: the node's lock, or a ttl of silence, shows that it is gone, so its lease only has to
            // run out.
            TenureError::LeaseHeld { holder, .. } => holder.replica == self.replica,
            error => {
                matches!(error.code(), ErrorCode::Draining | ErrorCode::Fenced) && !error.outcome_unknown()
            }
        }
    }

    /// One attempt: the outer error is final, the inner one is the tenure's.
    async fn attempt<T, F, Fut>(
        &self,
        key: &LeaseKey,
        opening: Opening,
        patience: Patience,
        work: &F,
    ) -> Result<Result<T, TenureError>, Problem>
    where
        F: Fn(Handle) -> Fut,
        Fut: Future<Output = Result<T, TenureError>>,
    {
        let open = async {
            match opening {
                Opening::Create => self.router.open(key).await,
                Opening::CreateUnlessForgotten => self.router.open_unless_forgotten(key).await,
                Opening::Existing => self.router.open_existing(key).await,
            }
        };
        let on_its_way =
            self.forwarding.as_ref().is_some_and(|forwarding| forwarding.on_their_way.contains(key));
        let open_here = self.router.handle_of(key);
        let is_news = open_here.is_none();
        let opened = match open_here {
            Some(handle) => Ok(handle),
            // Another replica is about to open it, and is not to find it open here again.
            None if on_its_way => {
                return Ok(Err(TenureError::Draining {
                    key: key.clone(),
                    epoch: None,
                    outcome_unknown: false,
                }));
            }
            None => self.within(patience, open).await.ok_or_else(|| {
                Problem::new(ErrorCode::Timeout, format!("{key} did not open in time")).of(key)
            })?,
        };
        let handle = match opened {
            Ok(handle) => handle,
            Err(error) => return Ok(Err(error)),
        };
        if is_news && handle.epoch() == Epoch::FIRST && matches!(opening, Opening::CreateUnlessForgotten) {
            audit_creation(key);
        }
        self.within(patience, work(handle)).await.ok_or_else(|| {
            Problem::new(ErrorCode::Timeout, format!("{key} did not answer in time"))
                .of(key)
                .outcome_unknown()
        })
    }

    /// What `future` gives while the patience lasts.
    async fn within<T>(&self, patience: Patience, future: impl Future<Output = T>) -> Option<T> {
        // An attempt is made even by who will not wait: what is there is answered at once.
        let left = patience.left(self.clock.as_ref()).max(PARKED_WAIT_MAX);
        tokio::select! {
            biased;
            done = future => Some(done),
            () = self.timer.sleep(left) => None,
        }
    }

    /// The tenant's row, where the tenant is there: unknown and forgotten ones are refused as every reading route does.
    pub(crate) async fn row(&self, key: &LeaseKey) -> Result<LeaseRow, Problem> {
        let row = self.leases.read(key).await?.ok_or_else(|| Problem::unknown_tenant(key))?;
        if row.is_forgotten() {
            let receipt = row.receipt.as_deref().and_then(|text| serde_json::from_str(text).ok());
            return Err(Problem::new(
                ErrorCode::TenantForgotten,
                format!("{key} was forgotten at epoch {}", row.floor),
            )
            .of(key)
            .with_receipt(receipt));
        }
        Ok(row)
    }

    /// What this replica says of itself.
    pub(crate) fn announcement(&self) -> Announcement {
        Announcement {
            replica: self.replica.clone(),
            instance: self.instance,
            endpoint: Some(self.endpoint.clone()),
            draining: self.stage.get() == Stage::Draining,
            open_tenants: self.router.open_tenants() as u64,
        }
    }
}
