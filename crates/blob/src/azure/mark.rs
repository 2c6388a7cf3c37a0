//! Whose object it is, and that it is empty, in its metadata.
//!
//! - `leasehold_attempt`: the id of the put that created the object. When a create finds the name taken, the object's own mark says whether
//!   it is an earlier attempt of the same put, whose answer was lost.
//! - `leasehold_empty`: the object is empty; its one byte stands for nothing. The client cannot read a blob without bytes, so none is stored.

use std::collections::HashMap;

use azure_core::prelude::Metadata;
use bytes::Bytes;
use leasehold_types::AttemptId;

const ATTEMPT: &str = "leasehold_attempt";
const EMPTY: &str = "leasehold_empty";
/// What a hierarchical account lists its directories with.
const DIRECTORY: &str = "hdi_isfolder";

/// What an empty object is stored as.
pub(super) const EMPTY_BODY: Bytes = Bytes::from_static(b"\0");

/// The metadata of an object that `attempt` creates.
pub(super) fn of(attempt: AttemptId, is_empty: bool) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.insert(ATTEMPT, attempt.to_string());
    if is_empty {
        metadata.insert(EMPTY, "true");
    }
    metadata
}

pub(super) fn is_of(metadata: Option<&HashMap<String, String>>, attempt: AttemptId) -> bool {
    metadata.and_then(|metadata| metadata.get(ATTEMPT)).is_some_and(|id| *id == attempt.to_string())
}

pub(super) fn is_empty(metadata: Option<&HashMap<String, String>>) -> bool {
    metadata.is_some_and(|metadata| metadata.contains_key(EMPTY))
}

pub(super) fn is_directory(metadata: Option<&HashMap<String, String>>) -> bool {
    metadata.is_some_and(|metadata| metadata.contains_key(DIRECTORY))
}
