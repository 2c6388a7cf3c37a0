//! What callers were told, kept beside the replicas, and the ground rule of contract.md as a check on what is served later.
//!
//! A [`Recorder`] is told of each write when it is sent and when it is answered, of each publish, handoff and forget that was
//! answered, and of each history that a replica served. It says at once what breaks the rule:
//!
//! - what was acknowledged at or below a published position, or before a handoff that succeeded, is served exactly once, at the
//!   position that its caller was told, by every later tenure, until it is forgotten;
//! - what was forgotten is served by nobody; what was refused was not executed; nothing is served that nobody sent;
//! - once a tenure has served, no older one acknowledges or serves what is asked of it from then on;
//! - the histories served are one line: each contains what an older tenure's end has settled, and what was lost stays lost.
//!
//! Moments are not compared between machines or processes: order is by tickets, which whoever records takes before a request
//! leaves and after its answer is there.

mod account;
mod book;
mod breach;

pub use account::{Durability, Lost, Served};
pub use book::{Recorder, Sent};
pub use breach::Breach;
