//! Who has a connection now, and how long others wait for it.

use std::{
    ops::{Deref, DerefMut},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};

use leasehold_types::{Clock, Epoch, Moment};

use crate::{Gate, LedgerError};

/// How often a call that waits asks its gate: it must not be held up by work that never ends once the gate is closed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A call that waits: refused when its gate closes, given up when its time is over.
pub(crate) struct Patience<'a> {
    gate: &'a dyn Gate,
    clock: &'a dyn Clock,
    limit: Duration,
    since: Option<Moment>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(gate: &'a dyn Gate, clock: &'a dyn Clock, limit: Duration) -> Self {
        Self { gate, clock, limit, since: None }
    }

    fn look(&mut self) -> Result<(), LedgerError> {
        self.gate.pass()?;
        let now = self.clock.now();
        let waited = now.since(*self.since.get_or_insert(now));
        if waited > self.limit { Err(LedgerError::Busy { waited }) } else { Ok(()) }
    }
}

/// The writer's place: held by one call at a time. No lock is held while it is out, so a panic of the holder poisons
/// nothing.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    epoch: Epoch,
    state: Mutex<State<T>>,
    freed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// `None` while it is held, and for ever once the slot is closed.
    item: Option<T>,
    holder: Option<ThreadId>,
    /// How many of maintenance wait. They go first: there is one at a time and it holds the writer for less than a
    /// millisecond, whereas writers that follow each other closely would never let it in.
    maintenance: usize,
    closed: bool,
}

impl<T> Slot<T> {
    pub(crate) fn new(epoch: Epoch, item: T) -> Self {
        let state = State { item: Some(item), holder: None, maintenance: 0, closed: false };
        Self { epoch, state: Mutex::new(state), freed: Condvar::new() }
    }

    /// Waits until nobody holds it.
    pub(crate) fn acquire(&self, mut patience: Patience<'_>) -> Result<Held<'_, T>, LedgerError> {
        let mut state = self.state();
        loop {
            if let Some(held) = self.take(&mut state, 0)? {
                return Ok(held);
            }
            patience.look()?;
            state = self.freed.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes it if nobody holds it and nobody of maintenance waits; `None` otherwise, at once.
    pub(crate) fn acquire_if_free(&self) -> Result<Option<Held<'_, T>>, LedgerError> {
        match self.take(&mut self.state(), 0) {
            // Its holder is further up in this very thread.
            Err(LedgerError::Reentrant) => Ok(None),
            taken => taken,
        }
    }

    /// Waits until nobody holds it, before all others, for at most `patience`; `None` when that was not enough.
    pub(crate) fn acquire_for_maintenance(
        &self,
        patience: Duration,
    ) -> Result<Option<Held<'_, T>>, LedgerError> {
        let mut state = self.state();
        state.maintenance += 1;
        let busy = |state: &mut State<T>| {
            state.item.is_none() && !state.closed && state.holder != Some(thread::current().id())
        };
        state =
            self.freed.wait_timeout_while(state, patience, busy).unwrap_or_else(PoisonError::into_inner).0;
        let taken = self.take(&mut state, 1);
        state.maintenance -= 1;
        drop(state);
        self.freed.notify_all();
        taken
    }

    /// Drops what is in the slot, now or when its holder lets it go. Calls fail from now on.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let item = state.item.take();
        drop(state);
        self.freed.notify_all();
        drop(item);
    }

    fn take(&self, state: &mut State<T>, waiting: usize) -> Result<Option<Held<'_, T>>, LedgerError> {
        if state.closed {
            return Err(LedgerError::Closed { epoch: self.epoch });
        }
        let me = thread::current().id();
        if state.holder == Some(me) {
            return Err(LedgerError::Reentrant);
        }
        if state.maintenance > waiting {
            return Ok(None);
        }
        let Some(item) = state.item.take() else { return Ok(None) };
        state.holder = Some(me);
        Ok(Some(Held { slot: self, item: Some(item) }))
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a slot holds, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'s, T> {
    slot: &'s Slot<T>,
    /// `None` only while it is dropped.
    item: Option<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().unwrap_or_else(|| unreachable!("taken by drop only"))
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().unwrap_or_else(|| unreachable!("taken by drop only"))
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        let mut state = self.slot.state();
        state.holder = None;
        let maintenance = state.maintenance > 0;
        let item = self.item.take();
        let closed = if state.closed {
            item
        } else {
            state.item = item;
            None
        };
        drop(state);
        // Everybody must look when maintenance waits, or the one that is woken might be none of it.
        if maintenance {
            self.slot.freed.notify_all();
        } else {
            self.slot.freed.notify_one();
        }
        drop(closed);
    }
}

/// Connections that are opened when they are needed, up to a bound.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    epoch: Epoch,
    open_max: usize,
    state: Mutex<PoolState<T>>,
    freed: Condvar,
}

#[derive(Debug)]
struct PoolState<T> {
    idle: Vec<T>,
    /// Idle ones and those in use.
    open: usize,
    closed: bool,
}

impl<T> Pool<T> {
    pub(crate) fn new(epoch: Epoch, open_max: usize) -> Self {
        let state = PoolState { idle: Vec::new(), open: 0, closed: false };
        Self { epoch, open_max: open_max.max(1), state: Mutex::new(state), freed: Condvar::new() }
    }

    /// An idle one, or a new one, or the first that is let go.
    pub(crate) fn acquire(
        &self,
        mut patience: Patience<'_>,
        open: impl FnOnce() -> Result<T, LedgerError>,
    ) -> Result<Borrowed<'_, T>, LedgerError> {
        let mut state = self.state();
        loop {
            if state.closed {
                return Err(LedgerError::Closed { epoch: self.epoch });
            }
            if let Some(item) = state.idle.pop() {
                return Ok(Borrowed { pool: self, item: Some(item) });
            }
            if state.open < self.open_max {
                state.open += 1;
                drop(state);
                // Counted first, so a failure to open must be uncounted: that is what dropping it does.
                let mut place = Borrowed { pool: self, item: None };
                place.item = Some(open()?);
                return Ok(place);
            }
            patience.look()?;
            state = self.freed.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Drops the idle ones and answers how many there were.
    pub(crate) fn close_idle(&self) -> usize {
        let mut state = self.state();
        let idle = std::mem::take(&mut state.idle);
        state.open -= idle.len();
        drop(state);
        idle.len()
    }

    /// Drops all, those in use when they are let go. Calls fail from now on.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.close_idle();
        self.freed.notify_all();
    }

    pub(crate) fn open(&self) -> usize {
        self.state().open
    }

    fn state(&self) -> MutexGuard<'_, PoolState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of a pool, until it is dropped.
#[derive(Debug)]
pub(crate) struct Borrowed<'p, T> {
    pool: &'p Pool<T>,
    /// `None` when it could not be opened, and while it is dropped.
    item: Option<T>,
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().unwrap_or_else(|| unreachable!("handed out when it was opened"))
    }
}

impl<T> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let rest = match self.item.take() {
            Some(item) if !state.closed => {
                state.idle.push(item);
                None
            }
            rest => {
                state.open -= 1;
                rest
            }
        };
        drop(state);
        self.pool.freed.notify_one();
        drop(rest);
    }
}
