//! A tenant's life on one replica.
//!
//! A [`Router`] holds at most one tenure per tenant. A tenure is a pure [`State`] and a driver that performs its [`Effect`]s; a
//! [`Handle`] is what callers hold of it. Every call passes the gate: phase first, deadline second, before a write and after it.
//!
//! | where | what |
//! |---|---|
//! | `state.rs`, `vocabulary.rs` | the transitions, pure |
//! | `tenure.rs`, `steps.rs`, `driver.rs` | from an event to its effects, in order, each in a task of its own |
//! | `opening.rs`, `uploading.rs`, `ending.rs`, `clockwork.rs` | what the driver does |
//! | `gate.rs` | who is let in |
//! | `handle.rs`, `ledger_ref.rs`, `append_queue.rs` | the ways in |
//! | `router.rs`, `table.rs`, `housekeeping.rs` | many tenants |
//! | `paths.rs` | what may be deleted on the local disk |

mod append_queue;
mod clockwork;
mod contained;
mod driver;
mod ending;
mod error;
mod event;
mod gate;
mod handle;
mod housekeeping;
mod ledger_ref;
mod opening;
mod options;
mod paths;
mod router;
mod shared;
mod state;
mod steps;
mod table;
mod tenure;
mod unpublished;
mod uploading;
mod vocabulary;
mod waiting;

pub use ending::{discard_local_ledger, forget_tenant};
pub use error::{RunError, TenureError};
pub use event::TenureEvent;
pub use handle::{Handle, TenureStatus};
pub use housekeeping::Housekept;
pub use ledger_ref::{LedgerRef, PreparedRef};
pub use options::{Observer, OptionsError, RouterOptions};
pub use paths::tenant_root;
pub use router::Router;
pub use shared::Backends;
pub use tenure::PublishedState;
pub use vocabulary::{
    Answer, Effect, Event, Illegal, LeaseState, Notice, Outcome, Phase, State, Step, Upload, UploadFailure,
    Waiter,
};

// What this crate's API names of the crates below it.
pub use leasehold_lease::Holder;
pub use leasehold_ledger::{
    Appended, EventPage, EventQuery, ExecuteAnswer, Executed, IdempotencyKey, Json, LedgerError,
    LedgerOptions, Limits, NewEvent, Rows, Statement, Value, View,
};
pub use leasehold_snapshot::{Published, Receipt, SnapshotOptions};
