//! The manifest: the small object written after an image, whose presence publishes it.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use leasehold_blob::{BlobKey, BlobPrefix};
use leasehold_types::{AttemptId, Epoch, LeaseKey, Position, ReplicaId, TenureId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    Layout, SnapshotError, SnapshotNumber, SnapshotRef,
    format::{
        Digest, Format, Seal,
        document::{self, Document},
    },
};

/// A snapshot: what it consists of, and where in the tenant's history it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Manifest {
    /// The format.
    pub format: Format,
    /// The tenure that published it.
    pub tenure_id: TenureId,
    /// The attempt to publish, so that a put whose answer was lost is known again.
    pub attempt: AttemptId,
    /// The tenant.
    pub key: LeaseKey,
    /// The epoch.
    pub epoch: Epoch,
    /// The number within the epoch.
    pub number: SnapshotNumber,
    /// Whether it was meant as the epoch's last one. Nothing rests on it yet: a successor seals all the same
    /// (protocol.md, "Publish").
    pub closed: bool,
    /// What it consists of.
    pub parts: Vec<Part>,
    /// Bytes per page of the database.
    pub page_size: u32,
    /// Pages of the database.
    pub pages: u64,
    /// The last event in it.
    pub position: Position,
    /// When, by the replica's calendar.
    pub at: Timestamp,
    /// The replica that published it.
    pub replica: ReplicaId,
}
leasehold_types::only_as_object!(Manifest + Serialize);

/// A part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "WrittenPart", into = "WrittenPart")]
pub struct Part {
    /// Where its bytes are.
    pub content: Content,
    /// What it is.
    pub kind: PartKind,
    /// How many bytes it has as stored.
    pub bytes: u64,
    /// The digest of those.
    pub sha256: Digest,
    /// How they are to be read.
    pub encoding: Encoding,
}

/// Where a part's bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// In an object of their own, under the tenant's prefix.
    Object(BlobKey),
    /// In the manifest itself.
    Inline(Bytes),
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A whole database file.
    Image,
}

/// How a part's bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// One zstd stream.
    Zstd,
    /// As they are.
    Plain,
}

/// A part as it is written: one of `key` and `inline`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
struct WrittenPart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inline: Option<String>,
    kind: PartKind,
    bytes: u64,
    sha256: Digest,
    encoding: Encoding,
}
leasehold_types::only_as_object!(WrittenPart + Serialize);

impl From<Part> for WrittenPart {
    fn from(part: Part) -> Self {
        let (key, inline) = match part.content {
            Content::Object(key) => (Some(key.as_str().to_owned()), None),
            Content::Inline(bytes) => (None, Some(BASE64.encode(bytes))),
        };
        let Part { kind, bytes, sha256, encoding, .. } = part;
        Self { key, inline, kind, bytes, sha256, encoding }
    }
}

impl TryFrom<WrittenPart> for Part {
    type Error = String;

    fn try_from(part: WrittenPart) -> Result<Self, String> {
        let content = match (part.key, part.inline) {
            (Some(key), None) => Content::Object(key.parse().map_err(|error| format!("{error}"))?),
            (None, Some(text)) => Content::Inline(
                BASE64.decode(text).map_err(|error| format!("an inline part: {error}"))?.into(),
            ),
            _ => return Err("a part has one of `key` and `inline`".to_owned()),
        };
        let WrittenPart { kind, bytes, sha256, encoding, .. } = part;
        Ok(Self { content, kind, bytes, sha256, encoding })
    }
}

/// What lies under a manifest's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The epoch's owner published.
    Published(Box<Manifest>),
    /// A successor took the name: nothing was published under it, and nothing will be above it.
    Sealed(Seal),
}

impl Manifest {
    /// The body of the object.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        document::write(self)
    }

    /// The snapshot that it publishes.
    #[must_use]
    pub const fn snapshot(&self) -> SnapshotRef {
        SnapshotRef { epoch: self.epoch, number: self.number }
    }

    /// The objects that its parts lie in.
    pub fn objects(&self) -> impl Iterator<Item = &BlobKey> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Object(key) => Some(key),
            Content::Inline(_) => None,
        })
    }

    /// The length of the database file in bytes.
    #[must_use]
    pub const fn database_bytes(&self) -> u64 {
        // Checked when it was decoded, and far from the bound when it is written.
        self.pages.saturating_mul(self.page_size as u64)
    }

    /// What is wrong with it as the manifest of `snapshot` of the tenant under `tenant`, if anything.
    fn fault(&self, tenant: &BlobPrefix, key: &LeaseKey, snapshot: SnapshotRef) -> Option<String> {
        if self.key != *key || self.snapshot() != snapshot {
            return Some(format!("it is the manifest of {} of {}", self.snapshot(), self.key));
        }
        if !(512..=65_536).contains(&self.page_size) || !self.page_size.is_power_of_two() {
            return Some(format!("{} is not a page size of SQLite", self.page_size));
        }
        if self.pages == 0 || self.pages > u64::from(u32::MAX) {
            return Some(format!("a database has no {} pages", self.pages));
        }
        if self.parts.len() != 1 {
            return Some(format!("format 1 has one image, this has {} parts", self.parts.len()));
        }
        if let Some(elsewhere) = self.objects().find(|object| object.under(tenant).is_none()) {
            return Some(format!("it names {elsewhere}, which is not its tenant's"));
        }
        None
    }
}

impl Entry {
    /// Reads the body that lies in the place of the manifest of `snapshot`.
    pub fn decode(layout: &Layout, snapshot: SnapshotRef, body: &[u8]) -> Result<Self, SnapshotError> {
        let object = layout.manifest(snapshot);
        match document::read::<Manifest>(&object, body)? {
            Document::Sealed(seal) => Ok(Self::Sealed(seal)),
            Document::Owned(manifest) => match manifest.fault(layout.tenant(), layout.key(), snapshot) {
                None => Ok(Self::Published(Box::new(manifest))),
                Some(fault) => Err(SnapshotError::damaged(&object, fault)),
            },
        }
    }
}
