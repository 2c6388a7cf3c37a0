//! What forwarding counts.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// How an attempt at another replica ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// By its answer.
    Answered,
    /// It does not hold the tenant any more.
    Moved,
    /// It was not reached.
    Unreachable,
    /// Its answer was lost.
    Lost,
    /// It did not answer in time.
    Late,
    /// It does not accept the secret.
    Refused,
}

impl Forwarded {
    const ALL: [Self; 6] =
        [Self::Answered, Self::Moved, Self::Unreachable, Self::Lost, Self::Late, Self::Refused];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Moved => "moved",
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
            Self::Late => "late",
            Self::Refused => "refused",
        }
    }
}

/// Attempts at other replicas, and what was known of them.
#[derive(Debug, Default)]
pub(crate) struct ForwardCounters {
    requests: Family<OutcomeLabel, Counter>,
    pub(super) retries: Counter,
    owner_lookups: Family<ResultLabel, Counter>,
    pub(super) peers_refused: Counter,
}

impl ForwardCounters {
    /// Puts them into `registry`, each series at zero: one that is not there until it counts one never rises for an alert.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "forwarded_requests",
            "Attempts at the replica that holds a tenant, by how they ended",
            self.requests.clone(),
        );
        registry.register(
            "forward_retries",
            "Further attempts at requests for tenants that moved or whose owner did not answer",
            self.retries.clone(),
        );
        registry.register(
            "owner_lookups",
            "Looks for the owner of a tenant that is not open here: hit or miss; corrected by an answer",
            self.owner_lookups.clone(),
        );
        registry.register(
            "peers_refused",
            "Requests that were marked as forwarded and did not show the secret",
            self.peers_refused.clone(),
        );
        for outcome in Forwarded::ALL {
            drop(self.requests.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }));
        }
        for result in ["hit", "miss", "corrected"] {
            drop(self.owner_lookups.get_or_create(&ResultLabel { result }));
        }
    }

    /// Counts an attempt at another replica.
    pub(super) fn forwarded(&self, outcome: Forwarded) {
        self.requests.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
    }

    /// Counts a look for a tenant's owner.
    pub(super) fn owner_known(&self, is_known: bool) {
        let result = if is_known { "hit" } else { "miss" };
        self.owner_lookups.get_or_create(&ResultLabel { result }).inc();
    }

    /// Counts an owner that another replica's answer named instead.
    pub(super) fn owner_corrected(&self) {
        self.owner_lookups.get_or_create(&ResultLabel { result: "corrected" }).inc();
    }
}
