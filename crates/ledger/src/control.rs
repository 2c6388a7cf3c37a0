//! What a connection's hooks look at: whose statement is being compiled, and whether the running one may go on.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use leasehold_types::{Clock, Moment, Refusal};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::{
    Gate,
    authorizer::{Verdict, judge},
    temporary,
};

/// One connection's control block, shared with its authorizer and its progress handler, which are installed once.
///
/// A connection is used by one thread at a time, so nothing here is ever contended; the locks are what sharing with
/// the hooks asks for.
pub(crate) struct Control {
    clock: Arc<dyn Clock>,
    /// Whether what is compiled or run now is ours. False but in the scope of [`Self::ours`]: a statement that
    /// `SQLite` compiles again by itself, after a schema change, is judged by who runs it.
    ours: AtomicBool,
    /// Written by the authorizer, taken when the statement was compiled.
    schema_change: AtomicBool,
    /// How many columns and functions callers' statements named since the last one began to be compiled. Written by the authorizer.
    terms: AtomicUsize,
    /// How many the running one may have named.
    terms_max: AtomicUsize,
    /// Bytes that one statement may write.
    written_max: u64,
    /// Written at the beginning and end of each call, read by the progress handler.
    call: Mutex<Call>,
}

/// How many looks pass between two at what was written: a few milliseconds, since one costs some microseconds.
const LOOKS_PER_COUNT: u32 = 256;
/// What may be written before the disk is looked at.
const WRITTEN_FREE: u64 = 1 << 20;

#[derive(Default)]
struct Call {
    gate: Option<Arc<dyn Gate>>,
    deadline: Option<Moment>,
    stopped: Option<Stop>,
    denied: Option<String>,
    spoiled: Option<&'static str>,
    /// Looks since the clock was started.
    looks: u32,
    /// What this thread had written at the first count.
    written_before: Option<u64>,
}

/// Why a running statement was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The gate closed.
    Refused(Refusal),
    /// It ran over its time.
    Timeout,
    /// It wrote too much into temporary files.
    Written,
    /// It wrote into temporary files, and the room that is left is for the ledgers.
    DiskShort,
    /// It was compiled again after a change of the schema, and names more than it may.
    Widened,
}

impl Control {
    pub(crate) fn new(clock: Arc<dyn Clock>, written_max: u64) -> Self {
        Self {
            clock,
            terms: AtomicUsize::new(0),
            terms_max: AtomicUsize::new(usize::MAX),
            written_max,
            ours: AtomicBool::new(false),
            schema_change: AtomicBool::new(false),
            call: Mutex::default(),
        }
    }

    /// Puts `gate` before every statement until the guard is dropped.
    pub(crate) fn arm(self: &Arc<Self>, gate: &Arc<dyn Gate>) -> Armed {
        *self.call() = Call { gate: Some(Arc::clone(gate)), ..Call::default() };
        Armed(Arc::clone(self))
    }

    /// Gives what runs from now on this much time. What an earlier statement was stopped or denied for is forgotten.
    pub(crate) fn start_clock(&self, limit: Duration) {
        let deadline = self.clock.now().plus(limit);
        let mut call = self.call();
        call.deadline = Some(deadline);
        call.stopped = None;
        call.denied = None;
        call.looks = 0;
        call.written_before = None;
    }

    /// Counts columns and functions from here.
    pub(crate) fn begin_terms(&self) {
        self.terms.store(0, Relaxed);
    }

    /// How many were named since.
    pub(crate) fn terms(&self) -> usize {
        self.terms.load(Relaxed)
    }

    /// What runs from now on may have named so many.
    pub(crate) fn allow_terms(&self, terms_max: usize) {
        self.terms_max.store(terms_max, Relaxed);
    }

    /// A statement failed for the caller although `SQLite` kept what it did: the transaction must not be committed.
    pub(crate) fn spoil(&self, why: &'static str) {
        self.call().spoiled.get_or_insert(why);
    }

    /// Why the transaction must not be committed.
    pub(crate) fn spoiled(&self) -> Option<&'static str> {
        self.call().spoiled
    }

    /// Lets our own statements through until the guard is dropped.
    pub(crate) fn ours(&self) -> Ours<'_> {
        let before = self.ours.swap(true, Relaxed);
        Ours { control: self, before }
    }

    /// Whether the statement that was just compiled changes the schema.
    pub(crate) fn take_schema_change(&self) -> bool {
        self.schema_change.swap(false, Relaxed)
    }

    /// Why the last statement was interrupted, if the progress handler did it.
    pub(crate) fn take_stop(&self) -> Option<Stop> {
        self.call().stopped.take()
    }

    /// What the last statement was denied.
    pub(crate) fn take_denied(&self) -> Option<String> {
        self.call().denied.take()
    }

    /// The authorizer's answer.
    pub(crate) fn authorize(&self, context: &AuthContext<'_>) -> Authorization {
        if self.ours.load(Relaxed) {
            return Authorization::Allow;
        }
        if matches!(context.action, AuthAction::Read { .. } | AuthAction::Function { .. }) {
            self.terms.fetch_add(1, Relaxed);
        }
        match judge(context) {
            Verdict::Allow => Authorization::Allow,
            Verdict::AllowSchemaChange => {
                self.schema_change.store(true, Relaxed);
                Authorization::Allow
            }
            Verdict::Deny(what) => {
                // The first one: what follows is how the compiler unwinds.
                self.call().denied.get_or_insert(what);
                Authorization::Deny
            }
        }
    }

    /// The progress handler's answer: whether the running statement must stop.
    pub(crate) fn must_stop(&self) -> bool {
        let mut call = self.call();
        let stop = match &call.gate {
            Some(gate) => gate.pass().err().map(Stop::Refused),
            None => None,
        };
        let late = || call.deadline.is_some_and(|deadline| self.clock.now() > deadline);
        let stop = stop.or_else(|| late().then_some(Stop::Timeout));
        let stop = stop.or_else(|| self.writes_too_much(&mut call));
        let widened = || self.terms() > self.terms_max.load(Relaxed);
        let stop = stop.or_else(|| widened().then_some(Stop::Widened));
        if stop.is_some() {
            call.stopped = stop;
        }
        stop.is_some()
    }

    /// What is written is counted from the first count on: a statement of a few milliseconds costs nothing.
    fn writes_too_much(&self, call: &mut Call) -> Option<Stop> {
        call.looks = call.looks.wrapping_add(1);
        if !call.looks.is_multiple_of(LOOKS_PER_COUNT) {
            return None;
        }
        let now = temporary::written_by_this_thread()?;
        let written = now.saturating_sub(*call.written_before.get_or_insert(now));
        if written > self.written_max {
            Some(Stop::Written)
        } else if written > WRITTEN_FREE && temporary::is_disk_short() {
            Some(Stop::DiskShort)
        } else {
            None
        }
    }

    fn call(&self) -> MutexGuard<'_, Call> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("ours", &self.ours).finish_non_exhaustive()
    }
}

/// While it lives, the connection's statements are gated.
#[derive(Debug)]
pub(crate) struct Armed(Arc<Control>);

impl Drop for Armed {
    fn drop(&mut self) {
        *self.0.call() = Call::default();
    }
}

/// While it lives, the connection's statements are ours.
#[derive(Debug)]
pub(crate) struct Ours<'c> {
    control: &'c Control,
    before: bool,
}

impl Drop for Ours<'_> {
    fn drop(&mut self) {
        self.control.ours.store(self.before, Relaxed);
    }
}
