//! How much one caller, and how much is done for one tenant: rates, and requests at work (decision 0047).
//!
//! A request is metered once, by the replica that a client sent it to; the one that holds the tenant counts it among its requests at
//! work and no more.

mod caller;
mod layer;
mod meters;
mod rate;

pub(crate) use caller::CallerId;
pub(crate) use layer::meter;
pub(crate) use meters::Metering;
pub(crate) use rate::TooMany;
