//! Asking replicas over HTTP, by TLS where an endpoint is https.

mod ask;
mod call;
mod endpoint;
mod wire;

pub(crate) use ask::{Client, not_a_replica, unreachable};
pub(crate) use call::Call;
pub(crate) use endpoint::Endpoint;
pub(crate) use wire::{Answer, Method, WireError};
