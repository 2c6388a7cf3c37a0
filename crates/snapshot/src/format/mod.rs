//! The persisted formats: small JSON objects, each with a format number that a reader refuses when it is newer
//! than it knows.

mod base;
mod digest;
mod document;
mod floor;
mod manifest;
mod receipt;
mod seal;

pub use base::{Base, Pin};
pub use digest::Digest;
pub use document::{DOCUMENT_BYTES_MAX, Format, INLINE_BYTES_MAX};
pub use floor::FloorRecord;
pub use manifest::{Content, Encoding, Entry, Manifest, Part, PartKind};
pub use receipt::Receipt;
pub use seal::{Seal, Sealer};
