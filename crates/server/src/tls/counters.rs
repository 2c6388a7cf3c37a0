//! What is counted of certificates.

use leasehold_types::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    of: &'static str,
    outcome: &'static str,
}

/// Whose files are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The listener's pair.
    Listener,
    /// The authorities by which other replicas are known.
    Peers,
}

impl Of {
    const ALL: [Self; 2] = [Self::Listener, Self::Peers];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Listener => "listener",
            Self::Peers => "peers",
        }
    }
}

/// Reloads, and when the certificate in use ends.
#[derive(Debug, Default)]
pub(crate) struct TlsCounters {
    reloads: Family<ReloadLabels, Counter>,
    ends: Gauge,
}

const DONE: &str = "done";
const FAILED: &str = "failed";

impl TlsCounters {
    /// Puts them into `registry`, each series at zero.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "tls_reloads",
            "Changed certificate files: taken, or found unusable, which is counted at every look",
            self.reloads.clone(),
        );
        registry.register_with_unit(
            "tls_certificate_expiry_timestamp",
            "When the listener's certificate ends, in seconds since 1970; 0 without one",
            Unit::Seconds,
            self.ends.clone(),
        );
        for of in Of::ALL {
            for outcome in [DONE, FAILED] {
                drop(self.reloads.get_or_create(&ReloadLabels { of: of.as_str(), outcome }));
            }
        }
    }

    pub(super) fn done(&self, of: Of) {
        self.reloads.get_or_create(&ReloadLabels { of: of.as_str(), outcome: DONE }).inc();
    }

    pub(super) fn failed(&self, of: Of) {
        self.reloads.get_or_create(&ReloadLabels { of: of.as_str(), outcome: FAILED }).inc();
    }

    pub(crate) fn ends(&self, not_after: Timestamp) {
        self.ends.set(not_after.as_millis() / 1_000);
    }
}
