//! The base of an epoch: its owner's pin, or a seal.

use bytes::Bytes;
use leasehold_blob::BlobKey;
use leasehold_types::{AttemptId, Floor, ReplicaId, TenureId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    SnapshotError, SnapshotRef,
    format::{
        Format, Seal,
        document::{self, Document},
    },
};

/// What a tenure writes first in its epoch: the snapshot that it starts from. Whatever an older epoch uploads
/// after that is never read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Pin {
    /// The format.
    pub format: Format,
    /// The tenure whose epoch this is.
    pub tenure_id: TenureId,
    /// The attempt to open, so that a pin whose answer was lost is known again.
    pub attempt: AttemptId,
    /// The snapshot that it starts from; `None` when it starts empty.
    pub snapshot: Option<SnapshotRef>,
    /// The forget floor that it knew.
    pub floor: Floor,
    /// Its replica.
    pub replica: ReplicaId,
    /// When it opened, by the replica's calendar.
    pub at: Timestamp,
}
leasehold_types::only_as_object!(Pin + Serialize);

/// What lies under a base's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The epoch's owner pinned what it starts from.
    Pinned(Pin),
    /// A successor sealed the epoch before its owner came to it: nobody serves at it.
    Sealed(Seal),
}

impl Pin {
    /// The body of the object.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        document::write(self)
    }
}

impl Base {
    /// Reads the body of `object`.
    pub fn decode(object: &BlobKey, body: &[u8]) -> Result<Self, SnapshotError> {
        Ok(match document::read(object, body)? {
            Document::Sealed(seal) => Self::Sealed(seal),
            Document::Owned(pin) => Self::Pinned(pin),
        })
    }

    /// When it was written, by its writer's calendar.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::Pinned(pin) => pin.at,
            Self::Sealed(seal) => seal.sealed_by.at,
        }
    }
}
