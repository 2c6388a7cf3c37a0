//! What must never happen.

use std::fmt;

/// A rule that a state breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A publish whose manifest was put is not in what a later tenure starts from, and no forget covered it.
    PublishedWriteLost,
    /// A tenure starts from what a superseded owner put after its successor's pin.
    SupersededImageRead,
    /// Two tenures have one epoch's base and manifests.
    EpochShared,
    /// What lies at or below a completed forget is served.
    ForgottenServed,
    /// An opener that nobody contends with does not get through, or a step ends in damage.
    NotThrough,
    /// A write is acknowledged as published whose image was not put, or was put below a completed forget.
    AcknowledgedUnpublished,
    /// A tenure that nobody took over from is told that it is superseded.
    OwnerUndone,
    /// A tenure that was superseded before it asked serves on.
    SupersededResumed,
    /// Two replicas acknowledge at the same time, or an older epoch does after a newer one.
    TwoAcknowledge,
    /// A handoff ends well although an acknowledged write is not published.
    HandoffLost,
    /// Something serves, uploads or is released against the transitions' own rules.
    Transition,
    /// A caller waits for something that is over.
    WaitsForEver,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::PublishedWriteLost,
        Self::SupersededImageRead,
        Self::EpochShared,
        Self::ForgottenServed,
        Self::NotThrough,
        Self::AcknowledgedUnpublished,
        Self::OwnerUndone,
        Self::SupersededResumed,
        Self::TwoAcknowledge,
        Self::HandoffLost,
        Self::Transition,
        Self::WaitsForEver,
    ];

    /// The rule in a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PublishedWriteLost => "no published write is lost",
            Self::SupersededImageRead => "no image of a superseded owner is read",
            Self::EpochShared => "no epoch is shared",
            Self::ForgottenServed => "nothing forgotten is served",
            Self::NotThrough => "the next opener gets through",
            Self::AcknowledgedUnpublished => "what is acknowledged as published is published",
            Self::OwnerUndone => "an owner that nobody superseded is not fenced",
            Self::SupersededResumed => "no superseded tenure is resumed",
            Self::TwoAcknowledge => "one acknowledges",
            Self::HandoffLost => "a handoff loses nothing",
            Self::Transition => "the transitions keep their rules",
            Self::WaitsForEver => "whoever waits is settled",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
