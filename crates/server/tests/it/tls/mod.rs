//! TLS: the listener's own, and between replicas.

pub(crate) mod authority;
mod listener;
mod peers;
pub(crate) mod relay;
