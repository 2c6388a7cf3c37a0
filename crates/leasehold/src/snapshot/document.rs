//! A snapshot, as programs and people are shown it.

use leasehold_snapshot::SnapshotInfo;
use leasehold_types::{ErrorCode, Position, ReplicaId, Timestamp};
use serde::Serialize;

use crate::error::CliError;

/// How a snapshot stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    /// Every part is in the store.
    There,
    /// Every part is in the store and was checked.
    Ok,
    /// Superseded: its manifest is kept, its parts were swept.
    Swept,
    /// Something of it is damaged, missing, or newer than this build reads.
    Damaged,
}

impl Standing {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::There => "there",
            Self::Ok => "ok",
            Self::Swept => "swept",
            Self::Damaged => "damaged",
        }
    }
}

/// What is wrong.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fault {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

/// One snapshot.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SnapshotDocument {
    pub(super) snapshot: String,
    epoch: u64,
    number: u64,
    pub(super) state: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Timestamp>,
    /// As stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) database_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replica: Option<ReplicaId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Fault>,
}

impl SnapshotDocument {
    /// What the store shows of it. Only superseded ones are swept, so the newest one without its parts is damaged.
    pub(super) fn of(info: SnapshotInfo, is_newest: bool) -> Self {
        let SnapshotInfo { snapshot, manifest, available } = info;
        let mut document = Self {
            snapshot: snapshot.to_string(),
            epoch: snapshot.epoch.get(),
            number: snapshot.number.get(),
            state: match (available, is_newest) {
                (true, _) => Standing::There,
                (false, true) => Standing::Damaged,
                (false, false) => Standing::Swept,
            },
            position: None,
            at: None,
            bytes: None,
            database_bytes: None,
            replica: None,
            error: None,
        };
        match manifest {
            Ok(manifest) => {
                document.position = Some(manifest.position);
                document.at = Some(manifest.at);
                document.bytes = Some(manifest.parts.iter().map(|part| part.bytes).sum());
                document.database_bytes = Some(manifest.database_bytes());
                document.replica = Some(manifest.replica.clone());
                if document.state == Standing::Damaged {
                    let objects: Vec<&str> =
                        manifest.objects().map(leasehold_blob::BlobKey::as_str).collect();
                    let message = format!("of {} something is not in the store", objects.join(", "));
                    document.error = Some(Fault { code: ErrorCode::Damaged, message });
                }
            }
            Err(error) => document.damaged(&error.into()),
        }
        document
    }

    pub(super) fn damaged(&mut self, error: &CliError) {
        self.state = Standing::Damaged;
        self.error = Some(Fault { code: error.code(), message: error.line() });
    }

    /// Its state, and what is wrong with it.
    pub(super) fn standing(&self) -> String {
        match &self.error {
            Some(fault) => format!("{}: {}", self.state.as_str(), fault.message),
            None => self.state.as_str().to_owned(),
        }
    }
}
