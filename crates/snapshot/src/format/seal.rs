//! The seal: what a successor puts in the place of a manifest or a base, so that a superseded tenure cannot.

use bytes::Bytes;
use leasehold_lease::Claim;
use leasehold_types::{Epoch, ReplicaId, TenureId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::format::{Format, document};

/// A seal. It says who sealed, for people; that it is there is what counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Seal {
    format: Format,
    /// Who sealed.
    pub sealed_by: Sealer,
}
leasehold_types::only_as_object!(Seal + Serialize);

/// Who sealed, and when.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Sealer {
    /// The sealing tenure's epoch.
    pub epoch: Epoch,
    /// The sealing tenure.
    pub tenure_id: TenureId,
    /// Its replica.
    pub replica: ReplicaId,
    /// When, by the replica's calendar.
    pub at: Timestamp,
}
leasehold_types::only_as_object!(Sealer + Serialize);

impl Seal {
    /// The seal that the tenure of `claim` puts at `at`.
    #[must_use]
    pub fn new(claim: &Claim, at: Timestamp) -> Self {
        Self {
            format: Format,
            sealed_by: Sealer {
                epoch: claim.epoch,
                tenure_id: claim.tenure,
                replica: claim.replica.clone(),
                at,
            },
        }
    }

    /// The body of the object.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        document::write(self)
    }
}
