//! The one renewal chain of a replica.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{
    StreamExt as _,
    future::{Either, Fuse, FutureExt as _, select},
    stream::FuturesUnordered,
};
use leasehold_types::{Act, Clock, LeaseKey, Moment, Point, Points, Timer};
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    Claim, HeldLease, KeeperOptions, LeaseError, LeaseStore, LeaseTimesError, Renewal,
    renewal_plan::{Share, chunks},
};

/// How many chunks are asked for at the same time.
const SIDE_BY_SIDE_MAX: usize = 4;

/// What became of one lease in one renewal.
#[derive(Clone, Debug)]
pub enum RenewalOutcome {
    /// The row is still ours. The keeper extends nothing: whoever is told decides, since a lapsed lease has to be checked against the
    /// snapshot store first ([`HeldLease::extend_if_proven`]).
    Granted {
        /// The clock's reading before the request left.
        sent_at: Moment,
    },
    /// The row is another tenure's, for good.
    Refused,
    /// The store did not say; the keeper asks again.
    Failed(Arc<LeaseError>),
}

/// Who is told what became of a lease's renewals. Called in the chain's own task: it must not wait. A panic in it harms nobody.
pub trait RenewalSink: Send + Sync {
    /// Takes one outcome.
    fn told(&self, outcome: RenewalOutcome);
}

impl<F: Fn(RenewalOutcome) + Send + Sync> RenewalSink for F {
    fn told(&self, outcome: RenewalOutcome) {
        self(outcome);
    }
}

/// Renews all leases of a replica in one chain, whatever its tenures do (contract rows H4, H5, R1).
///
/// A round cuts the registered leases, in the order of their keys, into chunks and asks for a few chunks side by side, each within
/// [`KeeperOptions::attempt_limit`]. The next round waits [`KeeperOptions::every`] from the end of the last: a missed tick is delayed,
/// never doubled. A lease is in one attempt at a time. An attempt that outlasts the interval holds up its own leases only: the others
/// are renewed on, and its own wait the interval out from its end. One that trips its limit is asked again at once, in halves
/// (`renewal_plan.rs`), since two attempts are what fits under a deadline.
pub struct Keeper {
    options: KeeperOptions,
    registry: Arc<Registry>,
    stop: watch::Sender<bool>,
    chain: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// Starts the chain, as a task of the current runtime. Its first round comes after one interval. Dropping the keeper stops it.
    #[must_use]
    pub fn start(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
        points: Arc<dyn Points>,
        options: KeeperOptions,
    ) -> Self {
        let registry = Arc::new(Registry::default());
        let (stop, stopped) = watch::channel(false);
        let chain = Chain { store, clock, timer, points, options, registry: Arc::clone(&registry) };
        let chain = Mutex::new(Some(tokio::spawn(chain.run(stopped))));
        Self { options, registry, stop, chain }
    }

    /// Has `lease` renewed from the next round on, and `sink` told of each outcome, until the registration is dropped. A lease of another
    /// ttl or margin is refused.
    pub fn register(
        &self,
        lease: Arc<HeldLease>,
        sink: Arc<dyn RenewalSink>,
    ) -> Result<Registration, LeaseTimesError> {
        if lease.options() != self.options.held() {
            return Err(LeaseTimesError::Mismatch {
                lease_ttl: lease.options().ttl(),
                keeper_ttl: self.options.held().ttl(),
            });
        }
        let id = self.registry.next.fetch_add(1, Ordering::Relaxed);
        let at = (lease.key().clone(), id);
        let entry = Entry { lease, sink, share: Share::full(self.options.chunk()), away: false };
        self.registry.lock().insert(at.clone(), entry);
        Ok(Registration { at, registry: Arc::clone(&self.registry) })
    }

    /// The times by which it renews.
    #[must_use]
    pub const fn options(&self) -> KeeperOptions {
        self.options
    }

    /// How many leases are registered.
    #[must_use]
    pub fn registered(&self) -> usize {
        self.registry.lock().len()
    }

    /// Ends the chain and returns once it has ended; what is under way is dropped without an answer.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(chain) = chain
            && let Err(error) = chain.await
        {
            tracing::error!(%error, "the renewal chain did not end by itself");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("options", &self.options)
            .field("registered", &self.registered())
            .finish_non_exhaustive()
    }
}

/// A lease's place in the chain; dropping it takes the lease out. An outcome that is being told at that moment may still arrive.
#[must_use = "dropping the registration ends the renewals"]
pub struct Registration {
    at: Place,
    registry: Arc<Registry>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let entry = self.registry.lock().remove(&self.at);
        // The sink may be the last to hold what it tells: its end must not run under the lock.
        drop(entry);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.at.0).finish()
    }
}

/// Sorted by key; the number tells registrations of one key apart.
type Place = (LeaseKey, u64);

#[derive(Default)]
struct Registry {
    entries: Mutex<BTreeMap<Place, Entry>>,
    next: AtomicU64,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, Entry>> {
        // Nothing panics under this lock, and a map of flags has no state that could be left half-written.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Entry {
    lease: Arc<HeldLease>,
    sink: Arc<dyn RenewalSink>,
    /// Moved by the chain after each attempt.
    share: Share,
    /// Queued, being asked for, or waiting its own interval out: no tick takes it along. Set and cleared by the chain.
    away: bool,
}

struct Chain {
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    points: Arc<dyn Points>,
    options: KeeperOptions,
    registry: Arc<Registry>,
}

/// Leases that travel together, and the round that sent them.
struct Chunk {
    round: u64,
    places: Vec<Place>,
}

/// What the chain waits for beside its tick.
enum Ended {
    Attempt {
        chunk: Chunk,
        asked: usize,
        tripped: bool,
    },
    /// Leases of an attempt that outlasted its interval have now waited theirs out.
    Rest(Vec<Place>),
}

type Pending = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// The chain between two events. `round` counts ticks; `open` counts the chunks of the present round that have not ended.
struct Progress {
    round: u64,
    open: usize,
    queue: VecDeque<Chunk>,
    asking: usize,
    pending: FuturesUnordered<Pending>,
    tick: Fuse<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Chain {
    async fn run(self, mut stopped: watch::Receiver<bool>) {
        let this = Arc::new(self);
        let chain = pin!(Arc::clone(&this).renew_for_ever());
        let stop = pin!(stopped.wait_for(|stop| *stop));
        // Also ends where the keeper was dropped: its sender is gone then.
        let _ = select(stop, chain).await;
    }

    async fn renew_for_ever(self: Arc<Self>) {
        let mut progress = Progress {
            round: 0,
            open: 0,
            queue: VecDeque::new(),
            asking: 0,
            pending: FuturesUnordered::new(),
            tick: self.timer.sleep(self.options.every()).fuse(),
        };
        loop {
            let ended = if progress.pending.is_empty() {
                (&mut progress.tick).await;
                None
            } else {
                match select(&mut progress.tick, progress.pending.next()).await {
                    Either::Left(((), _)) => None,
                    Either::Right((ended, _)) => ended,
                }
            };
            match ended {
                None => self.tick(&mut progress),
                Some(Ended::Rest(places)) => self.rejoin(&mut progress, &places),
                Some(Ended::Attempt { chunk, asked, tripped }) => {
                    progress.asking -= 1;
                    self.attempt_ended(&mut progress, chunk, asked, tripped);
                }
            }
            while progress.asking < SIDE_BY_SIDE_MAX
                && let Some(chunk) = progress.queue.pop_front()
            {
                progress.asking += 1;
                progress.pending.push(Box::pin(Arc::clone(&self).attempt(chunk)));
            }
        }
    }

    /// Begins a round with every lease that is not away.
    fn tick(&self, progress: &mut Progress) {
        progress.round += 1;
        progress.open = 0;
        progress.tick = self.timer.sleep(self.options.every()).fuse();
        let ready: Vec<Place> = {
            let entries = self.registry.lock();
            entries.iter().filter(|(_, entry)| !entry.away).map(|(place, _)| place.clone()).collect()
        };
        let round = progress.round;
        progress.open = self.send(progress, round, &ready);
    }

    /// Cuts leases into chunks and queues these for `round`; answers how many.
    fn send(&self, progress: &mut Progress, round: u64, places: &[Place]) -> usize {
        let mut sent = Vec::with_capacity(places.len());
        let mut shares = Vec::with_capacity(places.len());
        let mut entries = self.registry.lock();
        for place in places {
            if let Some(entry) = entries.get_mut(place) {
                entry.away = true;
                shares.push(entry.share);
                sent.push(place.clone());
            }
        }
        drop(entries);
        let cut = chunks(&shares);
        let count = cut.len();
        progress.queue.extend(cut.into_iter().map(|range| Chunk { round, places: sent[range].to_vec() }));
        count
    }

    /// A round's last chunk delays the next tick, so that the interval counts from the round's end.
    fn chunk_left(&self, progress: &mut Progress, round: u64) {
        if round == progress.round && progress.open > 0 {
            progress.open -= 1;
            if progress.open == 0 {
                progress.tick = self.timer.sleep(self.options.every()).fuse();
            }
        }
    }

    fn attempt_ended(&self, progress: &mut Progress, chunk: Chunk, asked: usize, tripped: bool) {
        let Chunk { round, places } = chunk;
        {
            let mut entries = self.registry.lock();
            for place in &places {
                if let Some(entry) = entries.get_mut(place) {
                    entry.share = if tripped {
                        entry.share.tripped(asked)
                    } else {
                        entry.share.answered(self.options.chunk())
                    };
                    entry.away = tripped || round != progress.round;
                }
            }
        }
        if tripped {
            // The halves belong to the present round: its end waits for them.
            let present = progress.round;
            let sent = self.send(progress, present, &places);
            progress.open += sent;
        } else if round != progress.round {
            let rest = self.timer.sleep(self.options.every());
            progress.pending.push(Box::pin(async move {
                rest.await;
                Ended::Rest(places)
            }));
        }
        self.chunk_left(progress, round);
    }

    /// Sends leases that have waited their own interval out; from the end of that on they are the rounds' again.
    fn rejoin(&self, progress: &mut Progress, places: &[Place]) {
        let present = progress.round;
        let sent = self.send(progress, present, places);
        progress.open += sent;
    }

    /// Asks for one chunk and tells each of its leases.
    async fn attempt(self: Arc<Self>, chunk: Chunk) -> Ended {
        let asked: Vec<(Claim, Arc<HeldLease>, Arc<dyn RenewalSink>)> = {
            let entries = self.registry.lock();
            let present = chunk.places.iter().filter_map(|place| entries.get(place));
            present
                .filter(|entry| !entry.lease.is_given_up())
                .map(|entry| (entry.lease.claim(), Arc::clone(&entry.lease), Arc::clone(&entry.sink)))
                .collect()
        };
        if asked.is_empty() {
            return Ended::Attempt { chunk, asked: 0, tripped: false };
        }
        let claims: Vec<Claim> = asked.iter().map(|(claim, ..)| claim.clone()).collect();
        let limit = self.options.attempt_limit();
        let sent_at = self.clock.now();
        // A store that panics must not end the chain for all leases.
        let renewal = AssertUnwindSafe(self.store.renew(&claims, self.options.held().ttl())).catch_unwind();
        let asking = select(renewal, self.timer.sleep(limit));
        let (answer, tripped) = match self.points.around(Act::RenewRow, None, asking).await {
            Either::Left((Ok(answer), _)) => (answer, false),
            Either::Left((Err(_), _)) => (Err(unanswered(claims.len(), "it panicked")), false),
            Either::Right(((), _)) => {
                (Err(LeaseError::Timeout { action: format!("renew {} leases", claims.len()), limit }), true)
            }
        };
        self.points.reached(Point::Before(Act::RenewTold), None);
        match answer {
            Ok(answers) if answers.len() == claims.len() => {
                for ((claim, lease, sink), answer) in asked.iter().zip(answers) {
                    match answer {
                        Renewal::Granted => tell(sink, RenewalOutcome::Granted { sent_at }),
                        Renewal::Refused if lease.refusal_counts(claim) => {
                            tell(sink, RenewalOutcome::Refused);
                        }
                        Renewal::Refused => {}
                    }
                }
            }
            other => {
                let miscounted = || unanswered(claims.len(), "it answered for another number of claims");
                let error = Arc::new(other.err().unwrap_or_else(miscounted));
                tracing::warn!(%error, leases = claims.len(), "a renewal failed");
                for (_, _, sink) in &asked {
                    tell(sink, RenewalOutcome::Failed(Arc::clone(&error)));
                }
            }
        }
        self.points.reached(Point::After(Act::RenewTold), None);
        Ended::Attempt { chunk, asked: claims.len(), tripped }
    }
}

fn unanswered(leases: usize, detail: &str) -> LeaseError {
    LeaseError::Unavailable { action: format!("renew {leases} leases"), detail: detail.into() }
}

fn tell(sink: &Arc<dyn RenewalSink>, outcome: RenewalOutcome) {
    if catch_unwind(AssertUnwindSafe(|| sink.told(outcome))).is_err() {
        tracing::error!("whoever is told of renewals panicked");
    }
}
