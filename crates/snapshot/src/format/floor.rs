//! The floor object: the store's own witness that a tenant was forgotten.

use bytes::Bytes;
use leasehold_types::{Floor, ReplicaId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::format::{Format, document};

/// A floor object's body. Its name says the floor, and its presence is what counts; the body is for people. It
/// holds nothing of the tenant and stays for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct FloorRecord {
    /// The format.
    pub format: Format,
    /// The floor.
    pub floor: Floor,
    /// Who wrote it.
    pub replica: ReplicaId,
    /// When, by the replica's calendar.
    pub at: Timestamp,
}
leasehold_types::only_as_object!(FloorRecord + Serialize);

impl FloorRecord {
    /// The body of the object.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        document::write(self)
    }
}
