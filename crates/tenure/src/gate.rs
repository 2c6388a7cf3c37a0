//! The gate: what every call passes, at every call, phase first and deadline second (design.md section 5).
//!
//! One atomic word carries the phase and the number of calls in flight, so that letting a call in and closing the gate
//! cannot miss each other: after the phase has left `Serving`, the count only falls.

use std::{
    fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use leasehold_lease::HeldLease;
use leasehold_ledger::Gate;
use leasehold_types::{Clock, FencedReason, Moment, Refusal};

use crate::vocabulary::{LeaseState, Phase, State};

const PHASE_MASK: u64 = 0xff;
const LEASE_SHIFT: u32 = 8;
const LEASE_MASK: u64 = 0xff << LEASE_SHIFT;
const FLIGHT_SHIFT: u32 = 16;
const FLIGHT_ONE: u64 = 1 << FLIGHT_SHIFT;

/// Told when the last call in flight has left a gate that is closed to new ones.
pub(crate) trait Drained: Send + Sync {
    /// No call is in flight.
    fn drained(&self);
}

/// A tenure's gate. The driver alone moves the phase, under the lock of its state.
pub(crate) struct TenureGate {
    /// Phase (bits 0..8), lease (8..16), calls in flight (16..).
    word: AtomicU64,
    /// Set once, when the lease was acquired.
    lease: OnceLock<Arc<HeldLease>>,
    clock: Arc<dyn Clock>,
    drained: OnceLock<Weak<dyn Drained>>,
}

const fn lease_code(lease: LeaseState) -> u64 {
    match lease {
        LeaseState::Held => 0,
        LeaseState::Lapsed => 1,
        LeaseState::Lost(FencedReason::Sealed) => 2,
        LeaseState::Lost(_) => 3,
    }
}

const fn refusal_of(word: u64, working: bool) -> Option<Refusal> {
    let phase = word & PHASE_MASK;
    let lost = match (word & LEASE_MASK) >> LEASE_SHIFT {
        0 => None,
        1 => Some(FencedReason::Lapsed),
        2 => Some(FencedReason::Sealed),
        _ => Some(FencedReason::Lost),
    };
    let open = phase == Phase::Serving as u64 || (working && phase == Phase::Draining as u64);
    match lost {
        None if open => None,
        None if phase == Phase::Released as u64 => Some(Refusal::Fenced(FencedReason::Released)),
        Some(FencedReason::Lapsed) if phase == Phase::Released as u64 => {
            Some(Refusal::Fenced(FencedReason::Released))
        }
        Some(reason) if open || phase == Phase::Released as u64 => Some(Refusal::Fenced(reason)),
        _ => Some(Refusal::Draining),
    }
}

impl TenureGate {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            word: AtomicU64::new(Phase::Opening as u64),
            lease: OnceLock::new(),
            clock,
            drained: OnceLock::new(),
        }
    }

    /// Names who is told when the gate has drained. Once.
    pub(crate) fn on_drained(&self, whom: Weak<dyn Drained>) {
        let first = self.drained.set(whom).is_ok();
        debug_assert!(first, "a gate has one driver");
    }

    /// Gives the gate the lease whose deadline it reads. Once, before the gate first opens.
    pub(crate) fn guard(&self, lease: Arc<HeldLease>) {
        let first = self.lease.set(lease).is_ok();
        debug_assert!(first, "a tenure has one lease");
    }

    pub(crate) fn lease(&self) -> Option<&Arc<HeldLease>> {
        self.lease.get()
    }

    /// Takes over the phase and the lease of `state`; the calls in flight stay counted.
    pub(crate) fn show(&self, state: State) {
        let bits = state.phase as u64 | (lease_code(state.lease) << LEASE_SHIFT);
        // Release: who sees the new phase sees what was done before it (the extended deadline, the lease).
        let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            Some((word & !(PHASE_MASK | LEASE_MASK)) | bits)
        });
    }

    pub(crate) fn in_flight(&self) -> u32 {
        u32::try_from(self.word.load(Ordering::Acquire) >> FLIGHT_SHIFT).unwrap_or(u32::MAX)
    }

    pub(crate) fn deadline(&self) -> Moment {
        self.lease.get().map_or(Moment::ORIGIN, |lease| lease.deadline())
    }

    /// Whether the lease is provably held now.
    pub(crate) fn proven(&self) -> Result<(), FencedReason> {
        if self.clock.now() < self.deadline() { Ok(()) } else { Err(FencedReason::Lapsed) }
    }

    fn check(&self, working: bool) -> Result<(), Refusal> {
        match refusal_of(self.word.load(Ordering::Acquire), working) {
            Some(refusal) => Err(refusal),
            None => self.proven().map_err(Refusal::Fenced),
        }
    }

    /// Lets a call in and counts it, or says why not.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Work, Refusal> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if let Some(refusal) = refusal_of(word, false) {
                return Err(refusal);
            }
            self.proven().map_err(Refusal::Fenced)?;
            match self.word.compare_exchange_weak(
                word,
                word + FLIGHT_ONE,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    return Ok(Work {
                        gate: Arc::new(WorkGate { gate: Arc::clone(self), ended: AtomicBool::new(false) }),
                    });
                }
                Err(now) => word = now,
            }
        }
    }

    /// The gate of a held view: no call of it counts as work.
    pub(crate) fn outside(self: &Arc<Self>) -> Arc<dyn Gate> {
        Arc::new(OutsideGate { gate: Arc::clone(self) })
    }

    fn leave(&self) {
        let before = self.word.fetch_sub(FLIGHT_ONE, Ordering::AcqRel);
        debug_assert!(before >> FLIGHT_SHIFT > 0, "nobody leaves who did not enter");
        let last = before >> FLIGHT_SHIFT == 1;
        if last
            && before & PHASE_MASK == Phase::Draining as u64
            && let Some(driver) = self.drained.get().and_then(Weak::upgrade)
        {
            driver.drained();
        }
    }
}

impl fmt::Debug for TenureGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenureGate").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

/// A permit: one call that was let in. While it lives a handoff waits for it.
#[derive(Debug)]
pub(crate) struct Work {
    gate: Arc<WorkGate>,
}

impl Work {
    /// The gate that this call's ledger asks: open while the tenure serves or drains.
    pub(crate) fn gate(&self) -> Arc<dyn Gate> {
        Arc::clone(&self.gate) as Arc<dyn Gate>
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // A view that outlives its work is one from outside.
        self.gate.ended.store(true, Ordering::Release);
        self.gate.gate.leave();
    }
}

#[derive(Debug)]
struct WorkGate {
    gate: Arc<TenureGate>,
    ended: AtomicBool,
}

impl Gate for WorkGate {
    fn pass(&self) -> Result<(), Refusal> {
        self.gate.check(!self.ended.load(Ordering::Acquire))
    }
}

#[derive(Debug)]
struct OutsideGate {
    gate: Arc<TenureGate>,
}

impl Gate for OutsideGate {
    fn pass(&self) -> Result<(), Refusal> {
        self.gate.check(false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use leasehold_types::{SystemClock, Timestamp};

    use super::*;

    #[derive(Debug, Default)]
    struct Counted(AtomicU32);

    impl Drained for Counted {
        fn drained(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn state(phase: Phase, lease: LeaseState) -> State {
        State { phase, lease, ..State::opening() }
    }

    const PHASES: [Phase; 7] = [
        Phase::Opening,
        Phase::Serving,
        Phase::Draining,
        Phase::Flushing,
        Phase::Forgetting,
        Phase::Abandoning,
        Phase::Released,
    ];
    const LEASES: [LeaseState; 4] = [
        LeaseState::Held,
        LeaseState::Lapsed,
        LeaseState::Lost(FencedReason::Lost),
        LeaseState::Lost(FencedReason::Sealed),
    ];

    /// The word says what the state says, for every state there is.
    #[test]
    fn the_word_refuses_as_the_state_does() {
        let gate = TenureGate::new(Arc::new(SystemClock));
        for phase in PHASES {
            for lease in LEASES {
                let state = state(phase, lease);
                gate.show(state);
                let word = gate.word.load(Ordering::Acquire);
                assert_eq!(refusal_of(word, false), state.refusal(), "{state:?}");
                let of_work = match phase {
                    Phase::Draining if lease == LeaseState::Held => None,
                    Phase::Draining => State { phase: Phase::Serving, ..state }.refusal(),
                    _ => state.refusal(),
                };
                assert_eq!(refusal_of(word, true), of_work, "work in {state:?}");
            }
        }
    }

    /// A clock that tests set.
    #[derive(Debug, Default)]
    struct At(AtomicU64);

    impl Clock for At {
        fn now(&self) -> Moment {
            Moment::from_nanos(self.0.load(Ordering::SeqCst))
        }

        fn wall(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }
    }

    #[test]
    fn without_a_lease_nobody_comes_in() {
        let gate = Arc::new(TenureGate::new(Arc::new(At::default())));
        gate.show(state(Phase::Serving, LeaseState::Held));
        assert_eq!(gate.enter().unwrap_err(), Refusal::Fenced(FencedReason::Lapsed));
        assert_eq!(gate.in_flight(), 0);
    }

    #[test]
    fn the_last_to_leave_a_closed_gate_says_so_once() {
        let gate = Arc::new(TenureGate::new(Arc::new(At::default())));
        let counted: Arc<Counted> = Arc::default();
        let driver: Weak<dyn Drained> = Arc::downgrade(&counted) as Weak<dyn Drained>;
        gate.on_drained(driver);
        // Two calls that came in while it served.
        gate.show(state(Phase::Serving, LeaseState::Held));
        gate.word.fetch_add(2 * FLIGHT_ONE, Ordering::SeqCst);
        gate.show(state(Phase::Draining, LeaseState::Held));
        assert_eq!(gate.in_flight(), 2, "showing a phase does not lose who is inside");
        gate.leave();
        assert_eq!(counted.0.load(Ordering::SeqCst), 0);
        gate.leave();
        assert_eq!(counted.0.load(Ordering::SeqCst), 1);
    }
}
