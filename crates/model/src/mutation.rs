//! The protocol with one of its steps left out, turned round or believed too early: what the check must find.
//!
//! A plan is never changed. What it asks is answered without being performed, performed in another order, or answered with
//! what a hastier plan would have believed; or the plan is begun with what a hastier caller would have told it.

use std::{fmt, time::Duration};

use leasehold_snapshot::plan::Keep;

use crate::{bounds::Bounds, rule::Rule};

/// One deviation from protocol.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// Open, step 4: the predecessor's next name is not sealed.
    NoNameSeal,
    /// Open, step 5: epochs without a base are not sealed.
    NoBaseSeal,
    /// Open, steps 4 to 6: the pin is put before the seals.
    PinBeforeSeal,
    /// Open, step 4: a name that is taken counts as sealed.
    TakenNameIgnored,
    /// Open, step 3: what lies under a manifest's name counts as a manifest, unread.
    NamesTrusted,
    /// Open, steps 1 and 2: the row's epoch is raised whoever has the row.
    AdvanceUnconditional,
    /// Publish: a put without an answer counts as done, so that the next number is used before this one's fate is known.
    FateAssumed,
    /// Publish: "exists" counts as ours, unread.
    ExistsIsOurs,
    /// Publish: nothing is asked after the manifest.
    UncheckedPublish,
    /// Forget: the floor object is put before the row is raised.
    FloorObjectFirst,
    /// Forget and open: no floor object is put.
    NoFloorObject,
    /// Forget: younger tenures' bases are not read before the receipt.
    YoungerUnread,
    /// Open, step 1: a floor that only the row has gets no floor object.
    FloorUnwitnessed,
    /// Forget: what is dead goes before the floor object is put.
    DeletedFirst,
    /// Sweep: the bases and seals of superseded epochs go at once.
    SealsSweptEarly,
    /// Sweep: what is superseded goes before the tenure's own first manifest.
    SweptBeforeOwn,
    /// Open, step 8: the floors are not read again after the pin.
    FloorsNotReadAgain,
    /// A lapsed tenure serves on by the row alone.
    ResumedByRow,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::NoNameSeal,
        Self::NoBaseSeal,
        Self::PinBeforeSeal,
        Self::TakenNameIgnored,
        Self::NamesTrusted,
        Self::AdvanceUnconditional,
        Self::FateAssumed,
        Self::ExistsIsOurs,
        Self::UncheckedPublish,
        Self::FloorObjectFirst,
        Self::NoFloorObject,
        Self::YoungerUnread,
        Self::FloorUnwitnessed,
        Self::DeletedFirst,
        Self::SealsSweptEarly,
        Self::SweptBeforeOwn,
        Self::FloorsNotReadAgain,
        Self::ResumedByRow,
    ];

    /// How the command line calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoNameSeal => "no-name-seal",
            Self::NoBaseSeal => "no-base-seal",
            Self::PinBeforeSeal => "pin-before-seal",
            Self::TakenNameIgnored => "taken-name-ignored",
            Self::NamesTrusted => "names-trusted",
            Self::AdvanceUnconditional => "advance-unconditional",
            Self::FateAssumed => "fate-assumed",
            Self::ExistsIsOurs => "exists-is-ours",
            Self::UncheckedPublish => "unchecked-publish",
            Self::FloorObjectFirst => "floor-object-first",
            Self::NoFloorObject => "no-floor-object",
            Self::YoungerUnread => "younger-unread",
            Self::FloorUnwitnessed => "floor-unwitnessed",
            Self::DeletedFirst => "deleted-first",
            Self::SealsSweptEarly => "seals-swept-early",
            Self::SweptBeforeOwn => "swept-before-own",
            Self::FloorsNotReadAgain => "floors-not-read-again",
            Self::ResumedByRow => "resumed-by-row",
        }
    }

    /// The rule that it breaks first.
    #[must_use]
    pub const fn breaks(self) -> Rule {
        match self {
            Self::NamesTrusted | Self::SweptBeforeOwn => Rule::NotThrough,
            Self::DeletedFirst => Rule::EpochShared,
            Self::AdvanceUnconditional => Rule::OwnerUndone,
            Self::FateAssumed | Self::ExistsIsOurs | Self::UncheckedPublish => Rule::AcknowledgedUnpublished,
            Self::NoFloorObject | Self::FloorsNotReadAgain | Self::YoungerUnread => Rule::ForgottenServed,
            Self::ResumedByRow => Rule::SupersededResumed,
            _ => Rule::PublishedWriteLost,
        }
    }

    /// The smallest bounds within which it is found.
    #[must_use]
    pub const fn bounds(self) -> Bounds {
        let two = Bounds { tenures: 2, mutation: Some(self), ..Bounds::SMALLEST };
        match self {
            Self::NoNameSeal | Self::PinBeforeSeal | Self::TakenNameIgnored | Self::AdvanceUnconditional => {
                two
            }
            Self::NoBaseSeal => Bounds { rewinds: 1, ..two },
            Self::NamesTrusted => Bounds { tenures: 3, ..two },
            Self::FateAssumed => Bounds { late: 1, ..two },
            Self::ExistsIsOurs => Bounds { row_silent: true, ..two },
            Self::UncheckedPublish | Self::FloorObjectFirst => Bounds { forgets: 1, ..two },
            Self::NoFloorObject | Self::YoungerUnread | Self::DeletedFirst | Self::FloorsNotReadAgain => {
                Bounds { forgets: 1, rewinds: 1, ..two }
            }
            Self::FloorUnwitnessed => Bounds { tenures: 3, forgets: 1, rewinds: 1, ..two },
            Self::SealsSweptEarly => Bounds { sweeps: 1, rewinds: 1, ..two },
            Self::SweptBeforeOwn => Bounds { sweeps: 1, inline: false, ..two },
            Self::ResumedByRow => Bounds { resumes: 1, rewinds: 1, ..two },
        }
    }

    /// What a sweep keeps.
    pub(crate) fn keep(mutation: Option<Self>) -> Keep {
        let days = if mutation == Some(Self::SealsSweptEarly) { 0 } else { 7 };
        Keep { fences: Duration::from_secs(days * 24 * 60 * 60), superseded: 0 }
    }
}

/// One deviation of a fleet's drivers from the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FleetMutation {
    /// A deadline counts from a renewal's answer, not from before its request left.
    DeadlineFromAnswer,
    /// A drain says that everything is published, unasked.
    DirtyOverlooked,
    /// The gate asks the phase and not the deadline.
    DeadlineUnasked,
}

impl FleetMutation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::DeadlineFromAnswer, Self::DirtyOverlooked, Self::DeadlineUnasked];

    /// The rule that it breaks first.
    #[must_use]
    pub const fn breaks(self) -> Rule {
        match self {
            Self::DirtyOverlooked => Rule::HandoffLost,
            Self::DeadlineFromAnswer | Self::DeadlineUnasked => Rule::TwoAcknowledge,
        }
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
