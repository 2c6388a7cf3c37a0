//! What is counted of the memory for requests.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Bytes that are held, and how often there was no room.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryCounters {
    pub(super) held: Gauge,
    pub(super) shed: Counter,
}

impl MemoryCounters {
    /// Puts them into `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "request_memory_bytes",
            "Bytes held for bodies, results and answers of requests",
            self.held.clone(),
        );
        registry.register(
            "request_memory_shed",
            "Times that a body, a result or a request was refused for want of memory",
            self.shed.clone(),
        );
    }
}
