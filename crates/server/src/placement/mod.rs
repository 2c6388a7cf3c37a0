//! Where a tenant belongs: rendezvous hashing over the replicas that take tenants, with a bound on each one's load (decision 0033).
//!
//! It is a preference and never safety: the lease decides. Whatever placement gets wrong, a request is answered.

mod counters;
mod departures;
mod fleet;
mod plan;
mod rebalance;
mod score;
mod share;
mod survey;

pub(crate) use counters::{Cause, MoveOutcome, PlacementCounters};
pub(crate) use departures::Departures;
pub(crate) use rebalance::keep_balanced;
pub(crate) use share::{Slack, even_share};
pub(crate) use survey::{OPEN_TENANTS, Survey};
