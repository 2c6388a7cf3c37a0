//! What placement counts.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MoveLabels {
    cause: &'static str,
    outcome: &'static str,
}

/// Why a tenant is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It belongs to a replica that came after it was opened here.
    Join,
    /// This replica has more than the bound.
    Share,
    /// This replica leaves.
    Drain,
    /// Somebody said so.
    Hand,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveOutcome {
    /// The replica that was to have it has it open.
    Moved,
    /// It could not be handed off, and serves on here.
    Stayed,
    /// It was handed off, and another replica opened it first.
    Taken,
    /// It was handed off, and nobody said that it is open: whoever is asked next opens it.
    Unopened,
}

impl Cause {
    const ALL: [Self; 4] = [Self::Join, Self::Share, Self::Drain, Self::Hand];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Share => "share",
            Self::Drain => "drain",
            Self::Hand => "hand",
        }
    }
}

impl MoveOutcome {
    const ALL: [Self; 4] = [Self::Moved, Self::Stayed, Self::Taken, Self::Unopened];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Stayed => "stayed",
            Self::Taken => "taken",
            Self::Unopened => "unopened",
        }
    }
}

/// Moves, and the shares as this replica knows them.
#[derive(Debug, Default)]
pub(crate) struct PlacementCounters {
    moves: Family<MoveLabels, Counter>,
    pub(super) fair_share: Gauge,
    pub(super) share_max: Gauge,
}

impl PlacementCounters {
    /// Puts them into `registry`, each series at zero: one that is not there until it counts one never rises for an alert.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "placement_moves",
            "Tenants that went to another replica, or were to: by cause (join, share, drain, hand) and outcome",
            self.moves.clone(),
        );
        registry.register(
            "placement_fair_share",
            "Tenants that each replica would have were they even, as this one knows the fleet; 0: it knows no fleet",
            self.fair_share.clone(),
        );
        registry.register(
            "placement_share_max",
            "Tenants that a replica has at the most before it hands some over",
            self.share_max.clone(),
        );
        for cause in Cause::ALL {
            for outcome in MoveOutcome::ALL {
                drop(self.moves.get_or_create(&labels(cause, outcome)));
            }
        }
    }

    /// Counts a tenant that was to go.
    pub(crate) fn moved(&self, cause: Cause, outcome: MoveOutcome) {
        self.moves.get_or_create(&labels(cause, outcome)).inc();
    }
}

const fn labels(cause: Cause, outcome: MoveOutcome) -> MoveLabels {
    MoveLabels { cause: cause.as_str(), outcome: outcome.as_str() }
}
