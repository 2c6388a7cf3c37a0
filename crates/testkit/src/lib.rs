//! What the suites share: manual clocks, faulty stores (wrappers), fleets, conformance suites.
//!
//! Fleets, and what stands on them, come with the feature `fleet`; cases that must not compile with `compile-fail`.

#[cfg(feature = "fleet")]
mod alone;
#[cfg(feature = "fleet")]
mod calls;
mod clock;
#[cfg(feature = "fleet")]
mod cloud;
#[cfg(feature = "compile-fail")]
pub mod compile_fail;
pub mod conformance;
#[cfg(feature = "fleet")]
mod embedded;
#[cfg(feature = "fleet")]
mod events;
mod faulty_blobs;
mod faulty_leases;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(feature = "fleet")]
mod kept_states;
#[cfg(feature = "fleet")]
mod pair;
mod proxy;
mod small_disk;
#[cfg(feature = "fleet")]
mod waiting;

#[cfg(feature = "fleet")]
pub use calls::{
    by_code, event, insert, insert_through_view, keys_of, read_through_view, touch_nothing, try_insert,
    try_keys_of,
};
pub use clock::{ManualClock, ManualTimer};
#[cfg(feature = "fleet")]
pub use cloud::{CloudPair, CloudServers};
#[cfg(feature = "fleet")]
pub use embedded::EmbeddedPair;
#[cfg(feature = "fleet")]
pub use events::Events;
pub use faulty_blobs::{BlobOp, Deferred, FaultyBlobs, Held};
pub use faulty_leases::{FaultyLeases, HeldCalls, LeaseOp};
#[cfg(feature = "fleet")]
pub use fleet::{Fleet, MARGIN, Replica, TTL, tenant};
#[cfg(feature = "fleet")]
pub use pair::Pair;
pub use proxy::{Cue, Exchange, Fault, FaultProxy, Planned};
pub use small_disk::SmallDisk;
#[cfg(feature = "fleet")]
pub use waiting::{PATIENCE, eventually, pass, waits, within};
