//! What the suites share: manual clocks, faulty stores (wrappers), fleets, conformance suites.
//!
//! Fleets, and what stands on them, come with the feature `fleet`.

mod clock;
pub mod conformance;
mod faulty_blobs;
mod faulty_leases;

pub use clock::{ManualClock, ManualTimer};
pub use faulty_blobs::{BlobOp, Deferred, FaultyBlobs, Held};
pub use faulty_leases::{FaultyLeases, HeldCalls, LeaseOp};
