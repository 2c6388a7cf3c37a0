//! The words of a tenure's state machine: phases, events, effects, and who is told what.

use leasehold_types::{FencedReason, Refusal};
use serde::Serialize;

/// Where a tenure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Phase {
    /// The lease is being acquired and the image restored; no handle exists.
    Opening = 0,
    /// Calls are let in.
    Serving = 1,
    /// A handoff waits for running work, which may use its ledger; new calls are refused.
    Draining = 2,
    /// A handoff uploads the last image and releases; every call is refused.
    Flushing = 3,
    /// The tenant is being forgotten; every call is refused.
    Forgetting = 4,
    /// The lease is being handed back without an upload; every call is refused.
    Abandoning = 5,
    /// The tenure is over.
    Released = 6,
}

/// What the tenure knows of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseState {
    /// Provably held up to the deadline.
    Held,
    /// Past its deadline and not refused: the row may still be ours.
    Lapsed,
    /// Another tenure's, or sealed by one.
    Lost(FencedReason),
}

/// The upload slot: one upload at a time per tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Upload {
    /// Nothing is being uploaded.
    Idle,
    /// An image is on its way to the store.
    Running {
        /// Whether it is a handoff's last one, taken with the gate closed.
        last: bool,
    },
}

/// A tenure between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Where it stands.
    pub phase: Phase,
    /// What it knows of its lease.
    pub lease: LeaseState,
    /// The upload slot.
    pub upload: Upload,
    /// Whether a snapshot was asked for that the running upload does not cover.
    pub queued: bool,
    /// Whether the row's forget floor was raised: from then on the tenure never serves again.
    pub floor_raised: bool,
    /// Whether the lease is being handed back. Nothing overtakes that.
    pub releasing: bool,
}

/// How an upload failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UploadFailure {
    /// The store or the local disk failed.
    Store,
    /// It landed, or not, after the deadline had passed.
    Lapsed,
    /// A successor is there.
    Superseded(FencedReason),
}

/// What happens to a tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The image is in, the lease was checked once more: calls may come.
    Opened,
    /// The lease was acquired to forget the tenant; nothing was restored.
    OpenedToForget,
    /// The opening failed, or stopped because it was asked to.
    OpenFailed {
        /// Whether a lease was acquired and has to be handed back.
        acquired: bool,
    },
    /// Somebody wants the opening not to go on (close, abandon or forget).
    StopAsked,
    /// A caller, or the cadence, wants a snapshot.
    SnapshotAsked {
        /// Whether something is unpublished.
        dirty: bool,
    },
    /// A caller wants the tenant handed off.
    HandoffAsked,
    /// A caller wants the lease handed back at once.
    AbandonAsked,
    /// A caller wants the tenant forgotten.
    ForgetAsked,
    /// No work is running any more while the gate is closed to new work.
    Drained {
        /// Whether something is unpublished.
        dirty: bool,
    },
    /// Running work did not end in time.
    DrainTimedOut,
    /// An upload was published.
    UploadPublished {
        /// Whether something is unpublished all the same.
        dirty: bool,
    },
    /// An upload was not published.
    UploadFailed {
        /// How.
        failure: UploadFailure,
        /// Whether something is unpublished.
        dirty: bool,
    },
    /// The row's forget floor was raised to this epoch.
    FloorRaised,
    /// The forget is complete and proven.
    Forgotten,
    /// The forget could not be completed.
    ForgetFailed {
        /// Set when another tenure holds the tenant.
        superseded: Option<FencedReason>,
    },
    /// A renewal was granted before the deadline had passed.
    Renewed,
    /// A renewal was granted after the deadline had passed: the snapshot store has to agree before the tenure serves on.
    RenewedLate,
    /// A renewal was refused.
    RenewRefused,
    /// The deadline passed.
    DeadlinePassed,
    /// The snapshot store agrees that this tenure goes on.
    StoreAgrees,
    /// The snapshot store knows of a successor.
    StoreDisagrees(FencedReason),
    /// The attempt to hand the lease back is over, whatever came of it: it is free now or runs out by itself.
    ReleaseEnded {
        /// Whether everything acknowledged is in the store.
        flushed: bool,
    },
}

/// Who waits for the end of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiter {
    /// Callers of handoff.
    Handoff,
    /// Callers of abandon.
    Abandon,
    /// The caller of forget.
    Forget,
    /// Callers of snapshot whom the upload that just ended covers.
    Snapshot,
    /// Callers of snapshot who wait for the next upload.
    NextSnapshot,
}

/// What a waiter is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It failed; the event's own error says how.
    Failed,
    /// What an earlier event brought, good or bad: it was kept until the lease was handed back.
    Kept,
    /// Work did not end in time.
    DrainTimeout,
    /// It was overtaken or the tenure is fenced.
    Refused(Refusal),
}

/// What observers are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// Calls may come.
    Acquired,
    /// A renewal was granted in time.
    Renewed,
    /// The deadline passed.
    Lapsed,
    /// A lapsed lease is held again, in the same epoch, with nothing lost.
    Resumed,
    /// The lease is another tenure's.
    Lost(FencedReason),
    /// An image was published.
    SnapshotPublished,
    /// An image was not published.
    SnapshotFailed,
    /// A handoff gave up waiting for work.
    DrainTimeout,
    /// A handoff has closed the gate to every call: nothing is acknowledged from here on, unless the flush fails.
    GateClosed,
    /// The lease was handed back.
    Released {
        /// Whether everything acknowledged is in the store.
        flushed: bool,
    },
    /// The tenant is forgotten and that is proven.
    Forgotten,
}

/// What the driver has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Begin an upload.
    StartUpload {
        /// Whether it is a handoff's last one.
        last: bool,
    },
    /// Begin to forget: raise the floor, delete, prove.
    StartForget,
    /// Hand the lease back.
    StartRelease {
        /// Whether everything acknowledged is in the store; then the local ledger goes too.
        flushed: bool,
    },
    /// Ask the snapshot store whether a lapsed lease may be resumed.
    StartResumeCheck,
    /// Let the time limit of the drain begin.
    ArmDrainTimer,
    /// Take what the granted renewal proves.
    ExtendDeadline,
    /// Keep what lies on the local disk for an operator.
    Salvage,
    /// Leave the router's table: no caller finds this tenure any more.
    LeaveTable,
    /// Tell a waiter.
    Settle(Waiter, Outcome),
    /// Tell observers.
    Tell(Notice),
    /// The tenure is over: stop renewing, close the ledger, wake whoever waits for the end.
    End,
}

/// What an asking caller is told at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It has begun; wait for the outcome.
    Begun,
    /// The same is under way already; wait for its outcome.
    Joined,
    /// There is nothing to do.
    Nothing,
    /// It is refused and nothing was executed.
    Refused(Refusal),
}

/// An event that cannot happen in this state: a defect of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} cannot happen in {state:?}")]
pub struct Illegal {
    /// The state, unchanged.
    pub state: State,
    /// The event.
    pub event: Event,
}

/// What an event leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The state from now on.
    pub state: State,
    /// What has to be done, in this order.
    pub effects: Vec<Effect>,
    /// What an asking caller is told; [`Answer::Begun`] for events that nobody asked for.
    pub answer: Answer,
}
