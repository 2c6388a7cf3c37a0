//! The number that a replica draws for a tenant.

use leasehold_types::LeaseKey;
use sha2::{Digest as _, Sha256};

/// Rendezvous hashing: each replica draws a number for the tenant, and the highest one has it, so that a replica that leaves moves only
/// its own tenants.
pub(crate) fn score(key: &LeaseKey, replica: &str) -> [u8; 32] {
    Sha256::new().chain_update(key.to_string()).chain_update([0]).chain_update(replica).finalize().into()
}
