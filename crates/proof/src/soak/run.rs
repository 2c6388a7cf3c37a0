//! The steps.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use leasehold_lease::TokioTimer;
use leasehold_testkit::{CloudPair, EmbeddedPair, ManualClock, Pair};
use leasehold_types::{LeaseKey, Moment, Timer as _};
use tempfile::TempDir;
use tokio::sync::watch;

use super::{
    action::{Action, Trouble, Way, Which, choose},
    baton::one_thread_at_a_time,
    book::Book,
    caller::Caller,
    chance::Chance,
    faults::{Ending, Faults, end},
    footprint::Footprint,
    plan::{Rhythm, SoakPlan},
    replica::{Life, Replica},
    report::{Failure, Report},
    time::Time,
};
use crate::ProofError;

/// How much time passes at once, where it is moved by hand.
pub(super) const SLICE: Duration = Duration::from_millis(500);
/// By how much faster the machine's time is meant where it is not.
const HASTE: u32 = 40;
/// How many calls may be under way where nothing says when they are done.
const IN_FLIGHT_MAX: usize = 48;
/// How old a tail may get over the cadence and its jitter: retries of a call, uploads that wait for each other.
const TAIL_GRACE: Duration = Duration::from_secs(8);
/// How long a replica's troubles have to be over before its uploads have caught up.
const WELL_AFTER: Duration = Duration::from_secs(15);
/// How much time passes after a step, and how likely.
const PAUSES: [(usize, u64); 6] = [(30, 0), (15, 20), (25, 100), (15, 400), (10, 1_000), (5, 3_000)];

/// A soak that goes on.
pub(super) struct Soak<P> {
    pub(super) plan: SoakPlan,
    pub(super) pair: P,
    pub(super) time: Time,
    pub(super) rhythm: Rhythm,
    pub(super) replicas: Vec<Replica>,
    pub(super) faults: Faults,
    pub(super) book: Arc<Book>,
    tenants: Vec<LeaseKey>,
    chance: Chance,
    calls: u64,
    pub(super) began: Moment,
    pub(super) dir: TempDir,
}

/// Soaks the embedded pair, in a runtime of its own, in time that is moved by hand. The same plan gives the same trace.
pub fn soak_embedded(plan: SoakPlan) -> Result<Report, Box<Failure>> {
    one_thread_at_a_time(move |idle| async move {
        let before = Footprint::now();
        let time = Time::ByHand { world: ManualClock::new(), idle };
        let pair = EmbeddedPair::manual().await;
        soak(plan, "embedded", pair, time, Rhythm::BY_HAND, before).await
    })
}

/// Soaks the cloud pair, on the servers that the environment names, in real time. The seed chooses; the order is the world's.
///
/// # Panics
/// If the environment names no servers.
pub async fn soak_cloud(plan: SoakPlan) -> Result<Report, Box<Failure>> {
    let before = Footprint::now();
    let pair = CloudPair::real_time().await;
    soak(plan, "cloud", pair, Time::Real, Rhythm::REAL, before).await
}

async fn soak<P: Pair>(
    plan: SoakPlan,
    pair: &'static str,
    stores: P,
    time: Time,
    rhythm: Rhythm,
    before: std::io::Result<Footprint>,
) -> Result<Report, Box<Failure>> {
    let book = Arc::new(Book::new(time.base(), plan.keeps_trace, rhythm.cadence()));
    let asked = plan.clone();
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let outcome = soaked(plan, stores, time, rhythm, &book, (before, tasks)).await;
    let failed = |(step, finding): (u64, String)| {
        let (_, digest, trace) = book.trace.read();
        let (seed, steps, size) = (asked.seed, asked.steps, (asked.replicas, asked.tenants));
        Box::new(Failure { seed, pair, steps, size, step, finding, digest, trace })
    };
    match (book.finding(), outcome) {
        (Some(finding), _) => Err(failed(finding)),
        (None, Err(error)) => Err(failed((0, format!("it could not be made: {error}")))),
        (None, Ok(ended)) => {
            let (lines, digest, trace) = book.trace.read();
            let standings = book.standings();
            Ok(Report {
                seed: asked.seed,
                pair,
                steps: asked.steps,
                counts: book.counts(),
                time: ended.time,
                oldest_tail: book.tails().oldest(),
                lost: standings.iter().map(|(key, _)| book.recorder.lost(key).len()).sum(),
                lines,
                digest,
                trace,
                footprints: ended.footprints,
            })
        }
    }
}

/// What is left when everything is gone.
struct Ended {
    time: Duration,
    footprints: (Footprint, Footprint),
}

async fn soaked<P: Pair>(
    plan: SoakPlan,
    stores: P,
    time: Time,
    rhythm: Rhythm,
    book: &Arc<Book>,
    (before, tasks): (std::io::Result<Footprint>, usize),
) -> Result<Ended, ProofError> {
    let before = before?;
    let mut soak = Soak::new(plan, stores, time.clone(), rhythm, book)?;
    soak.run().await;
    if book.finding().is_none() {
        soak.wind_down().await;
    }
    let passed = time.base().now().since(soak.began);
    let after = soak.vanish(&before, tasks).await?;
    Ok(Ended { time: passed, footprints: (before, after) })
}

impl<P: Pair> Soak<P> {
    fn new(
        plan: SoakPlan,
        pair: P,
        time: Time,
        rhythm: Rhythm,
        book: &Arc<Book>,
    ) -> Result<Self, ProofError> {
        let tenants = (0..plan.tenants).map(|tenant| format!("acme/t-{tenant:03}").parse());
        let tenants = tenants.collect::<Result<Vec<LeaseKey>, _>>()?;
        let (chance, calls, began) = (Chance::new(plan.seed), 0, time.base().now());
        let (dir, book) = (tempfile::tempdir()?, Arc::clone(book));
        let (replicas, faults) = (Vec::new(), Faults::default());
        let count = plan.replicas;
        let mut soak =
            Self { plan, pair, time, rhythm, replicas, faults, book, tenants, chance, calls, began, dir };
        for _ in 0..count {
            soak.add_replica()?;
        }
        Ok(soak)
    }

    /// One more replica, without any fault.
    pub(super) fn add_replica(&mut self) -> Result<(), ProofError> {
        let at = self.replicas.len();
        let blobs = self.pair.blobs();
        let blobs = match &self.plan.behind {
            Some(behind) => behind(blobs),
            None => blobs,
        };
        let stores = (self.pair.leases(), blobs);
        let root = self.dir.path().join("nodes").join(at.to_string());
        let (seed, rhythm) = (self.plan.seed, self.rhythm);
        self.replicas.push(Replica::start(at, stores, root, &self.time, (seed, rhythm), &self.book)?);
        Ok(())
    }

    /// All steps, or up to the first finding.
    async fn run(&mut self) {
        for step in 1..=self.plan.steps {
            self.book.begin_step(step);
            self.step(step).await;
            if self.book.finding().is_some() {
                return;
            }
        }
        self.book.begin_step(self.plan.steps + 1);
    }

    async fn step(&mut self, step: u64) {
        for ending in self.faults.due(step) {
            self.end(ending).await;
        }
        self.begin_anew();
        let action = choose(&mut self.chance);
        let tenant = if self.chance.one_in(3) {
            self.chance.below(self.tenants.len())
        } else {
            self.chance.below(self.tenants.len().div_ceil(10))
        };
        let key = self.tenants[tenant].clone();
        let up: Vec<usize> = self
            .replicas
            .iter()
            .filter(|replica| replica.router().is_some())
            .map(|replica| replica.at)
            .collect();
        let elsewhere = self.chance.one_in(4);
        let pause = Duration::from_millis(self.chance.weighted(&PAUSES));
        if !up.is_empty() {
            let any = self.chance.of(&up);
            let served_at = self.book.standing(&key, |standing| standing.served_at);
            let at = served_at.filter(|at| !elsewhere && up.contains(at)).unwrap_or(any);
            self.book.count(&format!("step {}", action.name()));
            self.act(step, action, at, &key);
        }
        self.settle().await;
        self.pass(pause).await;
    }

    pub(super) async fn end(&mut self, ending: Ending) {
        if let Some(line) = end(ending, &mut self.replicas).await {
            self.book.trace.line(line);
        }
    }

    /// Whoever is closed begins anew.
    pub(super) fn begin_anew(&mut self) {
        for replica in self.replicas.iter_mut().filter(|replica| replica.is_closed()) {
            match replica.begin() {
                Ok(()) => self.book.trace.line(format!("{} begins anew", replica.id)),
                Err(error) => self.book.find(None, error),
            }
        }
    }

    fn act(&mut self, step: u64, action: Action, at: usize, key: &LeaseKey) {
        let name = action.name();
        let Some(router) = self.replicas[at].router().cloned() else { return };
        self.calls += 1;
        let caller = Caller { book: Arc::clone(&self.book), router, at, key: key.clone(), call: self.calls };
        let under_way = || self.book.under_way();
        let call = self.calls;
        let line = |more: &str| self.book.trace.line(format!("{step} #{call} {name} {key} at r{at}{more}"));
        match action {
            Action::Append(batch, way) => {
                line(&format!(" {batch:?} {way:?}"));
                tokio::spawn(caller.append(batch, way, under_way()));
            }
            Action::Crowd(count) => {
                line(&format!(" x{count}"));
                for one in 0..count {
                    let caller = Caller { call: call * 100 + one as u64, ..caller.clone() };
                    let which = if one % 3 == 2 { Which::Again(one as u64) } else { Which::New };
                    tokio::spawn(caller.append(vec![which], Way::Append, under_way()));
                }
            }
            Action::Execute(which) => {
                line(&format!(" {which:?}"));
                tokio::spawn(caller.execute(which, under_way()));
            }
            Action::Read => {
                line("");
                tokio::spawn(caller.read(under_way()));
            }
            Action::Snapshot => {
                line("");
                tokio::spawn(caller.snapshot(under_way()));
            }
            Action::Handoff => {
                line("");
                tokio::spawn(caller.hand_off(under_way()));
            }
            Action::Abandon => {
                line("");
                tokio::spawn(caller.abandon(under_way()));
            }
            Action::Forget => match caller.begins_forget() {
                Some(before) => {
                    line(&format!(" {before:?}"));
                    tokio::spawn(caller.forget(before, under_way()));
                }
                None => line(": another one asks already"),
            },
            Action::Work(steps) => {
                line(&format!(" for {steps} steps"));
                let (go, told) = watch::channel(false);
                tokio::spawn(caller.work(told, under_way()));
                self.faults.ends_at(step + steps, Ending::Work(go));
            }
            Action::Replace(gives_up) => {
                // Two that wait for one tenant's end would be woken in any order.
                if self.book.nobody_waits(at) {
                    line("");
                    self.replace(at, gives_up);
                } else {
                    line(": somebody waits there");
                }
            }
            Action::Trouble(trouble, steps) => {
                line(&format!(" {trouble:?} for {steps} steps"));
                let leaves_one =
                    self.replicas.iter().filter(|replica| replica.router().is_some()).count() > 1;
                if trouble != Trouble::Pause || leaves_one {
                    let times = (step, step + steps);
                    self.faults.begin(trouble, times, &mut self.replicas[at], &mut self.chance);
                }
            }
        }
    }

    fn replace(&mut self, at: usize, gives_up: bool) {
        let closed = Arc::new(AtomicBool::new(false));
        let life = std::mem::replace(&mut self.replicas[at].life, Life::Closing(Arc::clone(&closed)));
        let Life::Up(router) = life else { return };
        let (book, under_way) = (Arc::clone(&self.book), self.book.under_way());
        tokio::spawn(async move {
            if !gives_up {
                let kept = router.close().await;
                let names: Vec<String> = kept.iter().map(ToString::to_string).collect();
                book.trace.line(format!("  r{at} closed, but for [{}]", names.join(", ")));
            }
            router.abandon_all().await;
            book.trace.line(format!("  r{at} is gone"));
            closed.store(true, std::sync::atomic::Ordering::SeqCst);
            drop(under_way);
        });
    }

    /// Waits until the step is over, as far as that can be said.
    pub(super) async fn settle(&self) {
        match &self.time {
            Time::ByHand { idle, .. } => idle.until_idle().await,
            Time::Real => {
                tokio::task::yield_now().await;
                while self.book.in_flight() > IN_FLIGHT_MAX {
                    TokioTimer.sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }

    /// Lets time pass.
    pub(super) async fn pass(&mut self, by: Duration) {
        if matches!(self.time, Time::Real) {
            return TokioTimer.sleep(by / HASTE).await;
        }
        let mut left = by;
        while !left.is_zero() {
            let slice = left.min(SLICE);
            left -= slice;
            self.pass_at_once(slice).await;
            self.look_at_tails(slice);
        }
    }

    /// Lets so much pass that nobody has a turn in between.
    pub(super) async fn pass_at_once(&mut self, by: Duration) {
        let Time::ByHand { world, .. } = &self.time else { return };
        self.pair.advance(by).await;
        world.advance(by);
        for replica in &mut self.replicas {
            replica.passed(by);
        }
        self.settle().await;
    }

    fn look_at_tails(&self, slice: Duration) {
        let limit = self.rhythm.cadence() + TAIL_GRACE;
        let too_old = self.book.tails().passed(slice, limit, |(at, key, epoch)| {
            let replica = &self.replicas[*at];
            let handle = replica.router().and_then(|router| router.handle_of(key));
            replica.well_for >= WELL_AFTER
                && handle.is_some_and(|handle| handle.epoch() == *epoch && handle.refusal().is_none())
        });
        if let Some(((at, key, epoch), age)) = too_old {
            let tail = format!("epoch {epoch} at r{at} could publish for {age:?} and did not");
            self.book.find(Some(&key), tail);
        }
    }
}
