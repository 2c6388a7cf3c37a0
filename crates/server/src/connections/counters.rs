//! What is counted of connections.

use std::sync::Arc;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// Why this side ended a connection before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Its peer had too many.
    Crowded,
    /// TLS was not agreed upon in time.
    Handshake,
    /// The head of a request did not arrive in time.
    Head,
    /// Nobody took what was answered.
    Stalled,
}

impl Cut {
    const ALL: [Self; 4] = [Self::Crowded, Self::Handshake, Self::Head, Self::Stalled];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Crowded => "crowded",
            Self::Handshake => "handshake",
            Self::Head => "head",
            Self::Stalled => "stalled",
        }
    }
}

/// Open connections, and those that were cut.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounters {
    open: Gauge,
    cut: Family<ReasonLabel, Counter>,
}

impl ConnectionCounters {
    /// Puts them into `registry`, each series at zero: one that is not there until it counts one never rises for an alert.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("connections_open", "Open connections", self.open.clone());
        registry.register(
            "connections_cut",
            "Connections that this replica ended: their peer had too many, a handshake or a request's head was late, an answer was not taken",
            self.cut.clone(),
        );
        for cut in Cut::ALL {
            drop(self.cut.get_or_create(&ReasonLabel { reason: cut.as_str() }));
        }
    }

    /// Counts a connection as long as the answer lives.
    pub(super) fn open(self: &Arc<Self>) -> Open {
        self.open.inc();
        Open(Arc::clone(self))
    }

    /// Counts a connection that was cut.
    pub(super) fn cut(&self, cut: Cut) {
        self.cut.get_or_create(&ReasonLabel { reason: cut.as_str() }).inc();
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Open(Arc<ConnectionCounters>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}
