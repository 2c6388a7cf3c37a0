//! The receipt of a forget.

use leasehold_types::{Floor, LeaseKey, Timestamp};
use serde::{Deserialize, Serialize};

use crate::format::Format;

/// What a forget did, proved by a listing (design.md section 4). Stored in the tenant's row; a repeated forget
/// answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Receipt {
    /// The format.
    pub format: Format,
    /// The tenant.
    pub key: LeaseKey,
    /// Everything in epochs up to this one is gone.
    pub floor: Floor,
    /// How many objects were deleted.
    pub objects_deleted: u64,
    /// How many bytes those were, by the listings.
    pub bytes_deleted: u64,
    /// When a listing showed nothing at or below the floor, by the replica's calendar.
    pub verified_at: Timestamp,
    /// When it will be looked at again, so that a late upload does not wait for an open that never comes.
    pub recheck_at: Vec<Timestamp>,
}
leasehold_types::only_as_object!(Receipt + Serialize);

impl Receipt {
    /// The receipt as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a receipt is JSON")
    }

    /// Reads what [`Self::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
