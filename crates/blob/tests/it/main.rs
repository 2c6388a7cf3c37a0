//! The blob store's suites: the contract over each way to the directory backend, and what is that backend's own.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get ends it")]

mod azure;
mod conformance;
mod directory;
mod full_disk;
mod fuzz;
