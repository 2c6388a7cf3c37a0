//! What plans ask and are answered.

use bytes::Bytes;
use leasehold_blob::{BlobKey, Put};
use leasehold_lease::{Claim, LeaseRow};
use leasehold_types::{Epoch, FencedReason, Floor, LeaseKey};

use crate::{Listing, SnapshotError, format::Manifest};

/// One atomic step that a plan wants done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// List the floor objects. Answered by [`Answer::Floors`].
    ReadFloors,
    /// List the tenant's prefix. Answered by [`Answer::Listed`].
    List,
    /// Read a small object. Answered by [`Answer::Got`].
    Get(BlobKey),
    /// Put a small object if absent. An error without an answer leaves the step as it is: the same put again.
    /// Answered by [`Answer::Put`].
    Put {
        /// Its name.
        key: BlobKey,
        /// Its body.
        body: Bytes,
    },
    /// Put the encoded image, if absent, under a name that is this attempt's alone. Answered by [`Answer::Put`].
    Upload(BlobKey),
    /// Download, verify and decode the parts of a manifest. Answered by [`Answer::Fetched`] or
    /// [`Answer::PartMissing`].
    Fetch(Box<Manifest>),
    /// Raise the row's epoch past `beyond`, if the row is this claim's. Answered by [`Answer::Advanced`].
    Advance {
        /// The claim as it stands.
        claim: Claim,
        /// The epoch that the new one must be above.
        beyond: Epoch,
    },
    /// Renew once, if the row is this claim's. Answered by [`Answer::Renewed`].
    Renew(Claim),
    /// Read the row. Answered by [`Answer::Row`].
    ReadRow,
    /// Ask whether the lease is provably held at this moment. Answered by [`Answer::Held`].
    Held,
    /// Raise the row's floor to the claim's epoch, if the row is this claim's. Answered by [`Answer::FloorRaised`].
    RaiseFloor(Claim),
    /// Delete all of an epoch. Answered by [`Answer::Deleted`].
    DeleteEpoch(Epoch),
    /// Delete an object. Answered by [`Answer::Deleted`].
    Delete(BlobKey),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The highest floor object; [`Floor::NONE`] where there is none.
    Floors(Floor),
    /// What the listing shows.
    Listed(Listing),
    /// The object's body; `None` where there is none.
    Got(Option<Bytes>),
    /// What the put came to.
    Put(Put),
    /// The parts are here and verified.
    Fetched,
    /// A part is not in the store.
    PartMissing(BlobKey),
    /// The row's new epoch; `None`: the row is not this claim's.
    Advanced(Option<Epoch>),
    /// Whether the renewal was granted.
    Renewed(bool),
    /// The row; `Err` when the lease store did not answer.
    Row(Result<Option<LeaseRow>, ()>),
    /// What the deadline says.
    Held(Result<(), FencedReason>),
    /// The floor as it stands now; `None`: refused, nothing was changed.
    FloorRaised(Option<Floor>),
    /// How many objects went.
    Deleted(u64),
}

impl Ask {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::ReadFloors => "the floors",
            Self::List => "a listing",
            Self::Get(_) => "an object",
            Self::Put { .. } | Self::Upload(_) => "a put",
            Self::Fetch(_) => "parts",
            Self::Advance { .. } => "a higher epoch",
            Self::Renew(_) => "a renewal",
            Self::ReadRow => "the row",
            Self::Held => "the deadline",
            Self::RaiseFloor(_) => "a raised floor",
            Self::DeleteEpoch(_) | Self::Delete(_) => "a deletion",
        }
    }
}

impl Answer {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Floors(_) => "floors",
            Self::Listed(_) => "a listing",
            Self::Got(_) => "an object",
            Self::Put(_) => "a put's outcome",
            Self::Fetched => "fetched parts",
            Self::PartMissing(_) => "a missing part",
            Self::Advanced(_) => "an epoch",
            Self::Renewed(_) => "a renewal",
            Self::Row(_) => "a row",
            Self::Held(_) => "a deadline",
            Self::FloorRaised(_) => "a raised floor",
            Self::Deleted(_) => "a count",
        }
    }
}

/// The plan `plan` was in the middle of `asked` and was fed something else.
pub(crate) fn illegal<T>(
    plan: &'static str,
    key: &LeaseKey,
    asked: &Step<T>,
    answer: &Answer,
) -> SnapshotError {
    let asked = match asked {
        Step::Ask(ask) => ask.name(),
        Step::Done(_) => "nothing more",
    };
    SnapshotError::IllegalAnswer { plan, key: key.clone(), asked, answer: answer.name() }
}

/// What a plan wants now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// This step, and its answer.
    Ask(Ask),
    /// Nothing more: this is the result.
    Done(T),
}
