//! What the suites share: manual clocks, faulty stores (wrappers), fleets, conformance suites.

pub mod conformance;
mod faulty_blobs;

pub use faulty_blobs::{BlobOp, Deferred, FaultyBlobs, Held};
