//! A replica's tenants: opened once each, closed side by side, forgotten whether open or not.

use std::{fmt, pin::pin, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use leasehold_lease::{HeldOptions, Keeper, KeeperOptions};
use leasehold_snapshot::{Receipt, SnapshotContext};
use leasehold_types::{FencedReason, LeaseKey, Refusal};

use tokio::sync::Semaphore;

use crate::{
    Backends, Handle, OptionsError, RouterOptions, TenureError,
    opening::{Purpose, forgotten},
    shared::Shared,
    steps::Cause,
    table::{Slot, Table},
    tenure::Tenure,
    vocabulary::{Event, Phase},
};

/// How often one call looks for a tenant that others open and end meanwhile.
const LOOKS_MAX: u32 = 64;

/// Holds at most one tenure per tenant. Cheap to clone; all clones are one router.
///
/// Dropping the last clone closes nothing: what is open stays open and is renewed until the process ends. [`close`](Self::close) hands it off.
#[derive(Clone)]
pub struct Router {
    shared: Arc<Shared>,
}

/// What a call found to do about a tenant.
enum Found {
    /// It is open.
    Open(Handle),
    /// Somebody opens it, perhaps this very call.
    Opening(Arc<Tenure>),
    /// It is on its way out.
    Ending(Arc<Tenure>),
}

impl Router {
    /// A router over these stores. It has to be made in a tokio runtime, whose tasks it uses from then on.
    pub fn new(options: RouterOptions, backends: Backends) -> Result<Self, OptionsError> {
        options.validate()?;
        let unfit = |error: leasehold_lease::LeaseTimesError| OptionsError {
            option: "ttl, margin, renew_every",
            found: error.to_string(),
            rule: "such that a renewal fits under a lease",
        };
        let held = HeldOptions::new(options.ttl, options.margin).map_err(unfit)?;
        let keeper = if options.auto_renew {
            let times = KeeperOptions::new(held).with_every(options.renew_interval()).map_err(unfit)?;
            Some(Keeper::start(
                Arc::clone(&backends.leases),
                Arc::clone(&backends.clock),
                Arc::clone(&backends.timer),
                Arc::clone(&backends.points),
                times,
            ))
        } else {
            None
        };
        let snapshots = SnapshotContext {
            blobs: Arc::clone(&backends.blobs),
            leases: Arc::clone(&backends.leases),
            clock: Arc::clone(&backends.clock),
            timer: Arc::clone(&backends.timer),
            entropy: Arc::clone(&backends.entropy),
            points: Arc::clone(&backends.points),
            options: options.snapshot.clone(),
        };
        let uploads = Semaphore::new(options.uploads_max.min(Semaphore::MAX_PERMITS));
        let runtime = tokio::runtime::Handle::current();
        let shared =
            Shared { options, held, backends, snapshots, keeper, uploads, table: Table::default(), runtime };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The stores and seams that this router works with.
    #[must_use]
    pub fn backends(&self) -> &Backends {
        &self.shared.backends
    }

    /// How it keeps its tenants.
    #[must_use]
    pub fn options(&self) -> &RouterOptions {
        &self.shared.options
    }

    /// What the functions of the snapshot crate work with.
    #[must_use]
    pub fn snapshots(&self) -> &SnapshotContext {
        &self.shared.snapshots
    }

    pub(crate) const fn from_shared(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Opens the tenant here, whether it exists or not. Calls for one tenant join; an opening goes on when its callers have gone.
    ///
    /// [`TenureError::LeaseHeld`] names another replica that holds it; [`TenureError::Draining`]: it was stopped, or this router is closed.
    pub async fn open(&self, key: &LeaseKey) -> Result<Handle, TenureError> {
        for _ in 0..LOOKS_MAX {
            match self.find_or_begin(key)? {
                Found::Open(handle) => return Ok(handle),
                Found::Opening(tenure) => {
                    let mut opened = tenure.opened.subscribe();
                    // The sender lives in the tenure that we hold.
                    let _ = opened.wait_for(Option::is_some).await;
                    let outcome = opened.borrow().clone();
                    return match outcome {
                        Some(Ok(())) => Ok(Handle::new(tenure)),
                        Some(Err(error)) => Err(error),
                        None => Err(refused(key)),
                    };
                }
                Found::Ending(tenure) => until_ended(&tenure).await,
            }
        }
        Err(refused(key))
    }

    /// Opens a tenant that exists: [`TenureError::TenantUnknown`] and [`TenureError::TenantForgotten`] instead of creating it.
    pub async fn open_existing(&self, key: &LeaseKey) -> Result<Handle, TenureError> {
        if let Some(handle) = self.handle_of(key) {
            return Ok(handle);
        }
        match self.row(key).await? {
            None => Err(TenureError::TenantUnknown { key: key.clone() }),
            Some(row) if row.is_forgotten() => Err(forgotten(key, &row)),
            Some(_) => self.open(key).await,
        }
    }

    /// Opens a tenant, and creates one that nobody ever had; a forgotten one is [`TenureError::TenantForgotten`].
    pub async fn open_unless_forgotten(&self, key: &LeaseKey) -> Result<Handle, TenureError> {
        match self.open_existing(key).await {
            Err(TenureError::TenantUnknown { .. }) => self.open(key).await,
            other => other,
        }
    }

    /// The tenant's handle, if it is open here and not on its way out.
    #[must_use]
    pub fn handle_of(&self, key: &LeaseKey) -> Option<Handle> {
        match self.shared.table.lock().by_key.get(key) {
            Some(Slot::Open(tenure)) => Some(Handle::new(Arc::clone(tenure))),
            _ => None,
        }
    }

    /// The handles of all tenants that are open here, in the order in which they were opened.
    #[must_use]
    pub fn handles(&self) -> Vec<Handle> {
        let mut handles: Vec<Handle> = {
            let slots = self.shared.table.lock();
            let open = slots.by_key.values().filter_map(|slot| match slot {
                Slot::Open(tenure) => Some(Handle::new(Arc::clone(tenure))),
                _ => None,
            });
            open.collect()
        };
        handles.sort_by_key(|handle| handle.tenure().order);
        handles
    }

    /// How many tenants are open here and not on their way out.
    #[must_use]
    pub fn open_tenants(&self) -> usize {
        let slots = self.shared.table.lock();
        slots.by_key.values().filter(|slot| matches!(slot, Slot::Open(_))).count()
    }

    /// How many tenants this router has: open, being opened, or on their way out. Costs nothing, however many there are.
    #[must_use]
    pub fn tenants(&self) -> usize {
        self.shared.table.lock().by_key.len()
    }

    /// Forgets the tenant, open here or not, damaged or not; a repeated forget answers the stored receipt. One that is opening is stopped first.
    pub async fn forget(&self, key: &LeaseKey) -> Result<Receipt, TenureError> {
        for _ in 0..LOOKS_MAX {
            let slot = self.shared.table.lock().by_key.get(key).cloned();
            match slot {
                Some(Slot::Open(tenure)) => match Handle::new(tenure).forget().await {
                    // It ended between the look and the call: there is another way now.
                    Err(TenureError::Fenced { reason: FencedReason::Released, .. }) => {}
                    outcome => return outcome,
                },
                Some(Slot::Opening(tenure)) => {
                    tenure.feed(Event::StopAsked, &Cause::default());
                    until_ended(&tenure).await;
                }
                // A second forget does not wait for the first (contract row F6).
                Some(Slot::Ending(tenure)) if tenure.state().phase == Phase::Forgetting => {
                    return Err(tenure.refused(Refusal::Draining));
                }
                Some(Slot::Ending(tenure)) => until_ended(&tenure).await,
                None => {
                    let row = self.row(key).await?;
                    let Some(row) = row else { return Err(TenureError::TenantUnknown { key: key.clone() }) };
                    if row.is_forgotten()
                        && let TenureError::TenantForgotten { receipt: Some(receipt), .. } =
                            forgotten(key, &row)
                    {
                        return Ok(*receipt);
                    }
                    if let Some(tenure) = self.begin_forget(key)? {
                        return self.forgotten_by(&tenure).await;
                    }
                }
            }
        }
        Err(refused(key))
    }

    async fn forgotten_by(&self, tenure: &Arc<Tenure>) -> Result<Receipt, TenureError> {
        let (told, wait) = crate::waiting::ask(&tenure.key);
        tenure.wait_for_forget(told);
        let me = Arc::clone(tenure);
        tenure.task(async move { me.open(Purpose::Forget).await });
        let mut opened = tenure.opened.subscribe();
        let begun = async move {
            let _ = opened.wait_for(Option::is_some).await;
            let outcome = opened.borrow().clone();
            outcome.and_then(Result::err)
        };
        let wait = std::pin::pin!(wait);
        let begun = std::pin::pin!(begun);
        match futures::future::select(wait, begun).await {
            futures::future::Either::Left((receipt, _)) => receipt,
            futures::future::Either::Right((Some(error), _)) => Err(error),
            futures::future::Either::Right((None, wait)) => wait.await,
        }
    }

    /// Hands the tenant's lease back without an upload, if it is open or opening here.
    pub async fn abandon(&self, key: &LeaseKey) -> Result<(), TenureError> {
        let slot = self.shared.table.lock().by_key.get(key).cloned();
        match slot {
            None => Ok(()),
            Some(Slot::Opening(tenure)) => {
                tenure.feed(Event::StopAsked, &Cause::default());
                until_ended(&tenure).await;
                Ok(())
            }
            Some(Slot::Open(tenure) | Slot::Ending(tenure)) => Handle::new(tenure).abandon().await,
        }
    }

    /// Opens nothing any more and hands every tenant off, a few side by side in the order in which they were opened. Answers exactly the
    /// tenants that could not be handed off: those serve on here.
    ///
    /// No more tenants are closed than can be uploaded at a time: one that would only wait for the others' uploads serves meanwhile. Those
    /// that wait for their own work to end are not among them.
    ///
    /// Bounded by the drain time-out and the uploads' limit. Waits for forgets and releases that are under way.
    pub async fn close(&self) -> Vec<LeaseKey> {
        let tenures = self.stop_opening();
        let lanes = self.shared.options.close_concurrency;
        let turns = Semaphore::new(self.shared.options.uploads_max.min(Semaphore::MAX_PERMITS));
        let outcomes: Vec<Option<LeaseKey>> =
            stream::iter(tenures).map(|tenure| close_in_turn(tenure, &turns)).buffered(lanes).collect().await;
        outcomes.into_iter().flatten().collect()
    }

    /// Opens nothing any more and hands every lease back without an upload, a few side by side in the order in which they were opened.
    pub async fn abandon_all(&self) {
        let keys: Vec<LeaseKey> = self.stop_opening().into_iter().map(|tenure| tenure.key.clone()).collect();
        let lanes = self.shared.options.close_concurrency;
        stream::iter(keys)
            .for_each_concurrent(lanes, |key| async move {
                // An abandon is refused by nothing that would not end the tenure itself.
                let _ = self.abandon(&key).await;
            })
            .await;
    }

    /// Closes the table to openings and answers everything in it, in the order in which it was opened.
    fn stop_opening(&self) -> Vec<Arc<Tenure>> {
        let mut tenures: Vec<Arc<Tenure>> = {
            let mut slots = self.shared.table.lock();
            slots.closed = true;
            slots.by_key.values().map(|slot| Arc::clone(slot.tenure())).collect()
        };
        tenures.sort_by_key(|tenure| tenure.order);
        tenures
    }

    async fn row(&self, key: &LeaseKey) -> Result<Option<leasehold_lease::LeaseRow>, TenureError> {
        self.shared.backends.leases.read(key).await.map_err(|source| TenureError::lease(key, source))
    }

    fn find_or_begin(&self, key: &LeaseKey) -> Result<Found, TenureError> {
        let mut slots = self.shared.table.lock();
        match slots.by_key.get(key) {
            Some(Slot::Open(tenure)) => return Ok(Found::Open(Handle::new(Arc::clone(tenure)))),
            Some(Slot::Opening(tenure)) => return Ok(Found::Opening(Arc::clone(tenure))),
            Some(Slot::Ending(tenure)) if !slots.closed => return Ok(Found::Ending(Arc::clone(tenure))),
            _ if slots.closed => return Err(refused(key)),
            _ => {}
        }
        let limit = self.shared.options.open_tenants_max;
        if slots.by_key.len() >= limit {
            return Err(TenureError::Overloaded {
                key: key.clone(),
                what: "the bound on open tenants",
                limit,
            });
        }
        slots.opened += 1;
        let tenure = Tenure::new(key.clone(), slots.opened, Arc::clone(&self.shared))?;
        slots.by_key.insert(key.clone(), Slot::Opening(Arc::clone(&tenure)));
        let me = Arc::clone(&tenure);
        tenure.task(async move { me.open(Purpose::Serve).await });
        Ok(Found::Opening(tenure))
    }

    /// A tenure that is begun to forget; `None`: somebody else began one meanwhile.
    fn begin_forget(&self, key: &LeaseKey) -> Result<Option<Arc<Tenure>>, TenureError> {
        let mut slots = self.shared.table.lock();
        if slots.closed {
            return Err(refused(key));
        }
        if slots.by_key.contains_key(key) {
            return Ok(None);
        }
        slots.opened += 1;
        let tenure = Tenure::new(key.clone(), slots.opened, Arc::clone(&self.shared))?;
        slots.by_key.insert(key.clone(), Slot::Ending(Arc::clone(&tenure)));
        Ok(Some(tenure))
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("replica", &self.shared.options.replica).finish_non_exhaustive()
    }
}

fn refused(key: &LeaseKey) -> TenureError {
    TenureError::refused(key, None, Refusal::Draining)
}

async fn until_ended(tenure: &Arc<Tenure>) {
    let mut ended = tenure.ended.subscribe();
    // The sender lives in the tenure that we hold.
    let _ = ended.wait_for(|ended| *ended).await;
}

/// How long a tenant that is closed keeps its turn while its own work has not ended: longer than a call that is under way takes, and nothing
/// beside the drain time-out of one that is stuck.
const TURN_WITH_WORK: Duration = Duration::from_secs(1);

/// Ends one tenant for a closing router once there is a turn for it; its key, if that failed.
async fn close_in_turn(tenure: Arc<Tenure>, turns: &Semaphore) -> Option<LeaseKey> {
    // The pool is never closed.
    let turn = turns.acquire().await;
    let mut ended = pin!(close_one(Arc::clone(&tenure)));
    tokio::select! {
        biased;
        failed = &mut ended => return failed,
        () = tenure.shared.backends.timer.sleep(TURN_WITH_WORK) => {}
    }
    if tenure.gate.in_flight() > 0 {
        drop(turn);
        return ended.await;
    }
    let failed = ended.await;
    drop(turn);
    failed
}

/// Ends one tenant for a closing router; its key, if that failed.
async fn close_one(tenure: Arc<Tenure>) -> Option<LeaseKey> {
    match tenure.state().phase {
        Phase::Opening => {
            tenure.feed(Event::StopAsked, &Cause::default());
            if tenure.state().phase != Phase::Serving {
                until_ended(&tenure).await;
                return None;
            }
        }
        Phase::Forgetting | Phase::Abandoning | Phase::Released => {
            until_ended(&tenure).await;
            return None;
        }
        Phase::Serving | Phase::Draining | Phase::Flushing => {}
    }
    let handle = Handle::new(Arc::clone(&tenure));
    match handle.handoff().await {
        Ok(()) => None,
        // Overtaken by an abandon or a forget: what its caller wanted.
        Err(error) if error.is_draining() && !matches!(tenure.state().phase, Phase::Serving) => {
            until_ended(&tenure).await;
            match tenure.state().lease {
                crate::vocabulary::LeaseState::Lost(_) => Some(tenure.key.clone()),
                _ => None,
            }
        }
        Err(error) => {
            tracing::error!(key = %tenure.key, error = %crate::steps::with_sources(&error), "a tenant could not be handed off");
            Some(tenure.key.clone())
        }
    }
}
