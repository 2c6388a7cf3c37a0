//! The blob store's contract.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{BlobError, BlobKey, BlobPrefix};

/// What is put: bytes in memory, or a local file that is streamed in bounded memory.
#[derive(Clone, Debug)]
pub enum Payload {
    /// These bytes.
    Bytes(Bytes),
    /// This file, which must not change until the put has ended.
    File(PathBuf),
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// The answer to a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Put {
    /// The object was not there and now is.
    Created,
    /// An object of this name is there already, whoever put it: it is untouched.
    Exists,
}

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobEntry {
    /// Its name.
    pub key: BlobKey,
    /// Its length in bytes.
    pub len: u64,
}

/// Named objects that are written once.
///
/// What every backend keeps:
///
/// - **A put creates or does nothing.** Of many puts of one name, at the same time or not, exactly one answers
///   [`Put::Created`] as long as the object is not deleted; no object is ever replaced.
/// - **An object is whole or not there**: no reader and no listing sees a half-written one, after a crash in the middle either.
/// - **Reading follows writing**: what was put before a get or a list began is in it, what was deleted is not.
/// - **An error leaves it open** whether a put or a delete was executed, or will be: a put may take effect after its caller saw it
///   fail. Whoever needs to know reads the object back.
/// - **A dropped call has nothing left that matters to its caller**: a dropped put of a file that takes effect all the same puts what
///   the file held before the drop, and a dropped download leaves no file.
/// - A name is an object or the beginning of other names: a backend may refuse `a` beside `a/b` ([`BlobError::NameInUse`]).
/// - A prefix ends on a segment, so that deleting `acme/` never takes `acme2/...` (contract row P2).
/// - Objects may be empty; keys are [`BlobKey`]s.
#[async_trait]
pub trait BlobStore: Send + Sync + fmt::Debug {
    /// Creates `key` with `payload` unless an object of that name is there.
    async fn put_if_absent(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError>;

    /// The object's bytes; `None` where there is none. An object longer than `len_max` bytes is [`BlobError::TooLarge`] and is not read.
    async fn get(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError>;

    /// Streams the object into a new local file at `to` in bounded memory and answers its length in bytes; `None` where there is no
    /// object. `to` must not exist; on an error it is removed.
    async fn download(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError>;

    /// All objects under `prefix` in the order of their keys, however many pages that takes.
    async fn list(&self, prefix: &BlobPrefix) -> Result<Vec<BlobEntry>, BlobError>;

    /// Deletes the object. `false`: there was none.
    async fn delete(&self, key: &BlobKey) -> Result<bool, BlobError>;

    /// Deletes every object under `prefix` and answers how many there were. Objects that are put while it runs may stay.
    async fn delete_prefix(&self, prefix: &BlobPrefix) -> Result<u64, BlobError>;
}
