//! What breaks the ground rule.

use leasehold_types::{Epoch, Floor, Position};

/// A broken rule, with what it was broken by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// A write that counts is not served.
    #[error("`{id}`, acknowledged at {at} and durable since, is not in what epoch {by} serves")]
    Missing {
        /// The write.
        id: String,
        /// Where it was acknowledged.
        at: Position,
        /// Who serves without it.
        by: Epoch,
    },
    /// A write was found to be lost when it was called durable, or was called durable after it was lost.
    #[error(
        "`{id}`, acknowledged at {at}, was lost when epoch {by} opened, and was called durable nevertheless"
    )]
    CalledDurable {
        /// The write.
        id: String,
        /// Where it was acknowledged.
        at: Position,
        /// Who serves without it.
        by: Epoch,
    },
    /// A write is served twice, or was acknowledged at two places that both count.
    #[error("`{id}` is at {first} and at {second}")]
    Twice {
        /// The write.
        id: String,
        /// One place.
        first: Position,
        /// The other.
        second: Position,
    },
    /// A write is elsewhere than its caller was told.
    #[error("`{id}` was acknowledged at {told} and is served at {found}")]
    Moved {
        /// The write.
        id: String,
        /// Where its caller was told it is.
        told: Position,
        /// Where it is.
        found: Position,
    },
    /// Something is served that nobody sent, or that its caller was told was not executed.
    #[error("`{id}` at {at} was {why}")]
    Unasked {
        /// The write.
        id: String,
        /// Where it is served.
        at: Position,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something forgotten is served.
    #[error("`{id}` at {at} was forgotten: the floor is {floor}")]
    Forgotten {
        /// The write.
        id: String,
        /// Where it is served.
        at: Position,
        /// What was forgotten.
        floor: Floor,
    },
    /// A forget is half done: some of it is served and some is not.
    #[error("a forget was begun, `{missing}` is gone by it, and `{served}` from before it is served")]
    HalfForgotten {
        /// What is gone.
        missing: String,
        /// What is there.
        served: String,
    },
    /// What was lost is served again.
    #[error("`{id}`, acknowledged at {at}, was lost and is served again")]
    Resurrected {
        /// The write.
        id: String,
        /// Where it was acknowledged.
        at: Position,
    },
    /// An older tenure acknowledged or served what was asked of it after a younger one had served.
    #[error("epoch {older} answered `{what}`, which was asked after epoch {younger} had answered")]
    Overlap {
        /// Who answered late.
        older: Epoch,
        /// Who had answered before it was asked.
        younger: Epoch,
        /// What was asked.
        what: String,
    },
    /// A history is not in order, or has a hole.
    #[error("position {found} stands where {expected} belongs")]
    OutOfOrder {
        /// What stands there.
        found: Position,
        /// What belongs there: the number counts from the first event, the epoch is at least its predecessor's.
        expected: Position,
    },
    /// A history has something from an epoch above the one that serves it.
    #[error("position {found} is above epoch {by}, which serves it")]
    FromAbove {
        /// The position.
        found: Position,
        /// Who serves it.
        by: Epoch,
    },
    /// A history does not contain what an older one has settled.
    #[error("{expected} is served no more, or has changed: epoch {by} has `{found}` in its place")]
    Rewritten {
        /// What was settled.
        expected: Position,
        /// What is there.
        found: String,
        /// Who serves it.
        by: Epoch,
    },
}
