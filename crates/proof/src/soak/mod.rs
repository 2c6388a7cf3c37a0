//! The soak: a fleet that is used, disturbed and looked at for as long as one likes, by a seed.
//!
//! Replicas of the product's own router stand in one process over one pair of backends. Step by step a seed chooses what callers ask
//! for (appends, SQL, reads, handoffs, abandons, forgets) and what goes wrong (pauses, clocks that jump, stores that are away, slow
//! or silent, uploads that land late, replicas that are replaced). A [`Recorder`](crate::recorder::Recorder) judges every answer
//! while it goes on; at the end everything is closed, read once more by somebody new, and looked for what stayed behind.
//!
//! On the embedded pair a seed is a whole run: time is moved by hand, and [one thread goes at a time](one_thread_at_a_time), so that the same
//! seed gives the same trace to the last byte. On the cloud pair the choices are the seed's and the order is the world's
//! (decision 0027).

mod action;
mod baton;
mod book;
mod caller;
mod chance;
mod ending;
mod faults;
mod footprint;
mod plan;
mod replica;
mod report;
mod run;
mod sql;
mod tails;
mod time;
mod trace;

pub use baton::one_thread_at_a_time;
pub use footprint::Footprint;
pub use plan::{BehindStore, SoakPlan};
pub use report::{Failure, Report};
pub use run::{soak_cloud, soak_embedded};
