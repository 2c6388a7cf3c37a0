//! What all of the small JSON objects share: a format number, and that a seal may lie in another's place.

use leasehold_blob::BlobKey;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

use crate::{SnapshotError, format::Seal};

/// The longest part that may lie inside a manifest, in bytes.
pub const INLINE_BYTES_MAX: u64 = 256 * 1024;

/// The longest of the small objects that a reader takes, in bytes: room for several inline parts.
pub const DOCUMENT_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The format that this build writes and the newest that it reads. A writer that adds a field raises it.
const CURRENT: u64 = 1;

/// The format number of an object: 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Format;

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(CURRENT)
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            CURRENT => Ok(Self),
            other => Err(serde::de::Error::custom(format_args!("format {other}"))),
        }
    }
}

/// What an object in a place where a seal may lie turned out to be.
pub(crate) enum Document<T> {
    Sealed(Seal),
    Owned(T),
}

/// The fields that are read before anything else is believed.
#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Probe {
    format: u64,
    sealed_by: Option<serde::de::IgnoredAny>,
}
leasehold_types::only_as_object!(Probe);

/// Reads the object's body, or says by its name what is wrong with it.
pub(crate) fn read<T: DeserializeOwned>(object: &BlobKey, body: &[u8]) -> Result<Document<T>, SnapshotError> {
    let damaged = |error: serde_json::Error| SnapshotError::damaged(object, error.to_string());
    let probe: Probe = serde_json::from_slice(body).map_err(damaged)?;
    if probe.format > CURRENT {
        return Err(SnapshotError::FormatTooNew {
            object: object.clone(),
            found: probe.format,
            known: CURRENT,
        });
    }
    if probe.sealed_by.is_some() {
        serde_json::from_slice(body).map(Document::Sealed).map_err(damaged)
    } else {
        serde_json::from_slice(body).map(Document::Owned).map_err(damaged)
    }
}

/// The body of an object.
pub(crate) fn write<T: Serialize>(content: &T) -> bytes::Bytes {
    // Structs of numbers and texts: nothing here can fail to be JSON.
    serde_json::to_vec(content).expect("the persisted formats are JSON").into()
}
