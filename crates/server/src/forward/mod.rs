//! Forwarding to the replica that holds a tenant: one hop, streaming both ways, authenticated by the fleet's secret
//! (decision 0031). A tenant that nobody holds is opened where it belongs (decision 0033).
//!
//! What was not executed is asked again wherever the tenant then is, as long as its caller waits; what may have been is asked again
//! only if it reads, or carries an idempotency key.

mod attempt;
mod counters;
mod ending;
mod errand;
mod handover;
mod headers;
mod kept;
mod layer;
mod moving;
mod opens;
mod owners;
mod peers;
mod relay;
mod secret;
mod verdict;
mod vigil;
mod way;
mod whereabouts;

pub(crate) use attempt::AskError;
pub(crate) use counters::ForwardCounters;
pub(crate) use ending::Ending;
pub(crate) use handover::{Told, give, hand_over, tell};
pub(crate) use headers::{FORWARDED_BY, is_marked};
pub(crate) use layer::{admit, forward, tenant_of};
pub(crate) use owners::Owner;
pub(crate) use peers::Forwarding;
pub(crate) use secret::PeerSecrets;
pub(crate) use verdict::Verdict;
