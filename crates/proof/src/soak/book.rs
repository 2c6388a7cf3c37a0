//! What everybody in one soak tells, and what was found wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_tenure::TenureEvent;
use leasehold_types::{Clock, LeaseKey};

use super::{sql::SqlBook, tails::Tails, trace::Trace};
use crate::recorder::Recorder;

/// Whether a tenant is being forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Forget {
    /// No.
    #[default]
    No,
    /// It was asked for, and there is no answer yet.
    Asked,
    /// There was an answer, and it does not say whether it happened.
    Unsettled,
}

/// What is known of a tenant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// The number of the next write that was never sent.
    pub(super) next: u64,
    /// The number of the next `execute` that was never sent.
    pub(super) next_sql: u64,
    pub(super) forget: Forget,
    /// Whether its last forget is done and nothing was asked for since that could create it again.
    pub(super) is_gone: bool,
    /// Where it was served last.
    pub(super) served_at: Option<usize>,
}

/// Shared by everybody in a soak.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) recorder: Recorder,
    pub(super) trace: Trace,
    cadence: Duration,
    sql: Mutex<SqlBook>,
    tails: Mutex<Tails>,
    standings: Mutex<BTreeMap<LeaseKey, Standing>>,
    /// Who waits for a tenant to open or to end, by replica: one at a time, since two would be woken in any order.
    waiting: Mutex<BTreeSet<(usize, LeaseKey)>>,
    counts: Mutex<BTreeMap<String, u64>>,
    findings: Mutex<Vec<(u64, String)>>,
    step: AtomicU64,
    in_flight: AtomicUsize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Book>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The right to wait for a tenant at a replica.
#[derive(Debug)]
pub(super) struct Turn(Arc<Book>, (usize, LeaseKey));

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&self.0.waiting).remove(&self.1);
    }
}

impl Book {
    /// `cadence`: how often what was written is published, at the least.
    pub(super) fn new(clock: Arc<dyn Clock>, keeps_trace: bool, cadence: Duration) -> Self {
        Self {
            cadence,
            recorder: Recorder::new(clock),
            trace: Trace::new(keeps_trace),
            sql: Mutex::default(),
            tails: Mutex::default(),
            standings: Mutex::default(),
            waiting: Mutex::default(),
            counts: Mutex::default(),
            findings: Mutex::default(),
            step: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
        }
    }

    pub(super) fn sql(&self) -> MutexGuard<'_, SqlBook> {
        locked(&self.sql)
    }

    pub(super) fn tails(&self) -> MutexGuard<'_, Tails> {
        locked(&self.tails)
    }

    pub(super) fn standing<T>(&self, key: &LeaseKey, look: impl FnOnce(&mut Standing) -> T) -> T {
        look(locked(&self.standings).entry(key.clone()).or_default())
    }

    pub(super) fn standings(&self) -> Vec<(LeaseKey, Standing)> {
        locked(&self.standings).iter().map(|(key, standing)| (key.clone(), *standing)).collect()
    }

    pub(super) fn turn(self: &Arc<Self>, at: usize, key: &LeaseKey) -> Option<Turn> {
        let place = (at, key.clone());
        locked(&self.waiting).insert(place.clone()).then(|| Turn(Arc::clone(self), place))
    }

    /// Whether nobody waits for any tenant at a replica.
    pub(super) fn nobody_waits(&self, at: usize) -> bool {
        locked(&self.waiting).iter().all(|(there, _)| *there != at)
    }

    pub(super) fn under_way(self: &Arc<Self>) -> UnderWay {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        UnderWay(Arc::clone(self))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    pub(super) fn begin_step(&self, step: u64) {
        self.step.store(step, Ordering::SeqCst);
    }

    /// Counts one of a kind, for the report.
    pub(super) fn count(&self, what: &str) {
        self.add(what, 1);
    }

    pub(super) fn add(&self, what: &str, times: u64) {
        let mut counts = locked(&self.counts);
        match counts.get_mut(what) {
            Some(count) => *count += times,
            None => drop(counts.insert(what.to_owned(), times)),
        }
    }

    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        locked(&self.counts).clone()
    }

    /// Something is wrong.
    pub(super) fn find(&self, key: Option<&LeaseKey>, what: impl Display) {
        let what = key.map_or_else(|| what.to_string(), |key| format!("{key}: {what}"));
        self.trace.line(format!("FOUND {what}"));
        locked(&self.findings).push((self.step.load(Ordering::SeqCst), what));
    }

    /// The first thing that was found wrong, and at which step.
    pub(super) fn finding(&self) -> Option<(u64, String)> {
        locked(&self.findings).first().cloned()
    }

    /// A replica's observer.
    pub(super) fn observed(&self, at: usize, replica: &str, event: &TenureEvent) {
        let (key, epoch) = (event.key(), event.epoch());
        self.count(&format!("event {}", event.name()));
        let place = || (at, key.clone(), epoch);
        let more = match event {
            TenureEvent::SnapshotPublished { number, position, bytes, .. } => {
                if let Err(breach) = self.recorder.published(key, *position) {
                    self.find(Some(key), breach);
                }
                self.tails().published(&place(), position.seq);
                format!(" {number} at {position}, {bytes} bytes")
            }
            TenureEvent::SnapshotFailed { code, .. } => {
                self.tails().upload_failed(&place(), self.cadence);
                format!(" {code}")
            }
            TenureEvent::Released { flushed, .. } => {
                self.tails().ended(&place());
                if *flushed {
                    self.flushed(event);
                }
                format!(" flushed: {flushed}")
            }
            TenureEvent::Lost { reason, .. } => {
                self.tails().ended(&place());
                format!(" {reason}")
            }
            TenureEvent::Swept { objects, bytes, .. } => format!(" {objects} objects, {bytes} bytes"),
            TenureEvent::Forgotten { receipt, .. } => {
                format!(" floor {}, {} objects", receipt.floor, receipt.objects_deleted)
            }
            _ => String::new(),
        };
        self.trace.line(format!("  {replica} {} {key} e{epoch}{more}", event.name()));
    }

    /// Everything that the tenure of this event acknowledged is in the store.
    fn flushed(&self, event: &TenureEvent) {
        let (key, epoch) = (event.key(), event.epoch());
        if let Err(breach) = self.recorder.handed_off(key, epoch) {
            self.find(Some(key), breach);
        }
        self.sql().published(key, epoch, u64::MAX);
    }
}
