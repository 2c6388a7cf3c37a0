//! The proof: replicas that are taken away at every step, and a recorder of what callers were told.
//!
//! Nothing here ships. A replica of this crate (`leasehold-replica`) is the product's own service, built by the same function, with
//! somebody at its points ([`leasehold_types::Points`]) who kills or stops the process there; its clients tell a
//! [`recorder::Recorder`] what they were told, and whoever serves next is judged by it.

mod arms;
mod client;
mod objects;
pub mod recorder;
mod replica;
pub mod soak;
mod world;

pub use arms::{Action, Arm, ArmError, Arms};
pub use client::{Answered, Client};
pub use objects::{left_of, owners};
pub use replica::{ReplicaArgs, run_replica};
pub use world::{Cloud, ProofError, Times, World};
