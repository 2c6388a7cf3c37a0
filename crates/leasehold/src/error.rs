//! What can go wrong on the command line.

use std::{error::Error, fmt::Write as _, io, path::PathBuf};

use leasehold_blob::{BlobError, BlobKey};
use leasehold_lease::{LeaseError, TOKENS_MAX};
use leasehold_ledger::LedgerError;
use leasehold_server::{ServeError, StartError, TlsError};
use leasehold_snapshot::{SnapshotError, SnapshotRef};
use leasehold_types::{ErrorCode, LeaseKey, TokenName};

use crate::{
    client::{Endpoint, WireError},
    exit::Exit,
    problem::Problem,
};

/// Why a verb did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    // Fix the command.
    /// The command line is not one. Displays as clap wrote it, without its mark.
    #[error("{}", usage_of(.0))]
    Usage(clap::Error),
    /// The file that was to be written is there.
    #[error("{path} is there already and is left as it is: name another file", path = path.display())]
    Exists { path: PathBuf },
    /// Somebody has to confirm, and nobody can be asked.
    #[error(
        "forgetting {key} deletes it for ever, and there is no terminal to ask at: say --yes, or --dry-run to see what would go"
    )]
    NoTerminal { key: LeaseKey },
    /// The operator was asked and did not confirm.
    #[error("{key} was not forgotten: it was not confirmed")]
    NotConfirmed { key: LeaseKey },
    /// Several salvages, and no name.
    #[error("{key} has several salvages, say which with --name and --replica: {names}")]
    SeveralSalvages { key: LeaseKey, names: String },
    /// What a replica is told to listen at is no address.
    #[error("LEASEHOLD_LISTEN is no address with a port: {text}; name the replica with --endpoint")]
    NoAddress { text: String },
    /// The embedded pair is configured, which makes its tables with its file.
    #[error(
        "there is nothing to migrate: neither `postgres` nor `azure` is configured (--config, LEASEHOLD_POSTGRES__URL), and the embedded pair \
         needs no migration"
    )]
    NothingToMigrate,
    /// A name by which nobody could tell it from an id.
    #[error("{name} looks like a token's id: give the service a name of its own")]
    NameLikeAnId { name: TokenName },
    /// Two live tokens of a name.
    #[error(
        "two live tokens are called {name} already: revoke the one that is no longer used, by its id (`leasehold token list`)"
    )]
    TwoTokens { name: TokenName },
    /// No more can be kept.
    #[error("there are {TOKENS_MAX} live tokens: revoke those that nobody uses (`leasehold token list`)")]
    TooManyTokens,
    /// The file of a token cannot be used.
    #[error("{path} holds no token: it has to be one line", path = path.display())]
    NoTokenInFile { path: PathBuf },
    /// The token would have been read by whoever reads along.
    #[error(
        "{endpoint} would be sent the token in clear, and is not this machine: ask it by https:// (its authority's certificate with \
         --ca-file), or through a tunnel to a loopback address"
    )]
    TokenInClear { endpoint: Endpoint },
    /// The authorities by which replicas are known cannot be used.
    #[error("the authorities by which replicas are known cannot be used (--ca-file, LEASEHOLD_CA_FILE)")]
    Authorities { source: TlsError },
    // It is not there.
    /// No live token is called so.
    #[error("no live token has the name or id {which}: `leasehold token list` shows them")]
    NoToken { which: String },
    /// No replica ever ran on this directory, or not this one.
    #[error("{path} is not there: name the replicas' data directory with --data-dir", path = path.display())]
    NoDataDir { path: PathBuf },
    /// The tenant has no snapshot.
    #[error("{key} has no snapshot in {store}")]
    NoSnapshot { key: LeaseKey, store: String },
    /// The snapshot is superseded and was swept.
    #[error("snapshot {snapshot} of {key} is superseded and its parts were swept: list what is there")]
    Swept { key: LeaseKey, snapshot: SnapshotRef },
    /// The tenant has no such salvage.
    #[error("{key} has no salvage{named}: list what it has", named = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default())]
    NoSalvage { key: LeaseKey, name: Option<String> },
    // The replica.
    /// It answered with a problem.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// It could not be reached, or stopped answering.
    #[error("failed to reach {endpoint}: is a replica running there? (--endpoint, LEASEHOLD_URL)")]
    Unreachable { endpoint: Endpoint, source: WireError },
    /// It answered something else than a replica does.
    #[error("{endpoint} does not answer like a replica: {detail}")]
    NotAReplica { endpoint: Endpoint, detail: String },
    /// What arrived is not what was sent.
    #[error(
        "what arrived of {key} is not what was sent (SHA-256 {found}, sent with {expected}): nothing was written, try again"
    )]
    OtherDigest { key: LeaseKey, found: String, expected: String },
    /// The replica did not come up, or did not go well.
    #[error(transparent)]
    Serve(#[from] ServeError),
    // The disk and the store.
    /// A local file or directory failed.
    #[error("failed to {action} {path}", path = path.display())]
    Local { action: &'static str, path: PathBuf, source: io::Error },
    /// An image whose database is not sound.
    #[error("{object} is damaged")]
    DamagedImage { object: BlobKey, source: LedgerError },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The standard output cannot be written.
    #[error("failed to write to the standard output")]
    Output(#[source] io::Error),
    /// The runtime or the signals of the process.
    #[error("failed to {action}")]
    Process { action: &'static str, source: io::Error },
}

impl CliError {
    /// The stable code (contract.md, "What the checks imply", 5).
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::NothingToMigrate | Self::Authorities { .. } => ErrorCode::InvalidConfiguration,
            Self::NotConfirmed { .. } | Self::TwoTokens { .. } | Self::TooManyTokens => {
                ErrorCode::PreconditionFailed
            }
            Self::NoDataDir { .. }
            | Self::NoToken { .. }
            | Self::NoSnapshot { .. }
            | Self::Swept { .. }
            | Self::NoSalvage { .. } => ErrorCode::NotFound,
            Self::Problem(problem) => problem.code(),
            Self::Unreachable { .. } => ErrorCode::Timeout,
            Self::Usage(_)
            | Self::Exists { .. }
            | Self::NoTerminal { .. }
            | Self::SeveralSalvages { .. }
            | Self::NotAReplica { .. }
            | Self::NoAddress { .. }
            | Self::NameLikeAnId { .. }
            | Self::NoTokenInFile { .. }
            | Self::TokenInClear { .. } => ErrorCode::InvalidArgument,
            Self::OtherDigest { .. } => ErrorCode::Damaged,
            Self::Serve(error) => error.code(),
            Self::Local { source, .. } | Self::Output(source) | Self::Process { source, .. } => {
                match source.kind() {
                    io::ErrorKind::StorageFull => ErrorCode::DiskFull,
                    _ => ErrorCode::LocalIo,
                }
            }
            Self::DamagedImage { source, .. } => source.code(),
            Self::Snapshot(error) => error.code(),
            Self::Ledger(error) => error.code(),
            Self::Blob(error) => error.code(),
            Self::Lease(error) => error.code(),
        }
    }

    /// How the process ends with it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Serve(ServeError::NotFlushed(_)) => Exit::NotFlushed,
            Self::Serve(ServeError::Start(_)) => match Exit::of(self.code()) {
                Exit::Usage => Exit::Usage,
                _ => Exit::Failed,
            },
            _ => Exit::of(self.code()),
        }
    }

    /// What to do next, where the message does not say it.
    pub(crate) fn advice(&self) -> Option<&str> {
        match self {
            Self::Problem(problem) => problem.next(),
            Self::Serve(ServeError::Start(error)) => match error.as_ref() {
                StartError::Local { .. }
                | StartError::Blob(BlobError::Local { .. })
                | StartError::Lease(LeaseError::Open { .. }) => {
                    Some("give the replica a data directory that it can write (--data-dir)")
                }
                StartError::Lease(LeaseError::Unavailable { .. } | LeaseError::Timeout { .. }) => {
                    Some("is the database up, and does `postgres.url` lead to it from here?")
                }
                StartError::Blob(error) if error.is_transient() => Some(
                    "is the storage account reachable from here, and may this identity use the container (Storage Blob Data Contributor)?",
                ),
                StartError::Listen { .. } => Some("listen on another address (--listen)"),
                StartError::NoReplicaIdLeft { .. } => Some("use another data directory (--data-dir)"),
                _ => None,
            },
            Self::Serve(ServeError::NotFlushed(_)) => {
                Some("what was not published is on this replica's disk: see `leasehold salvage list`")
            }
            _ => None,
        }
    }

    /// The message with everything that caused it, in one line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some libraries repeat their source in their own message.
            if !line.ends_with(&text) {
                // Writing into a String does not fail.
                let _ = write!(line, ": {text}");
            }
            cause = error.source();
        }
        // It may carry what somebody else sent, and goes to a terminal.
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        Self::Serve(error.into())
    }
}

/// The first paragraph of what clap says, without its `error: `.
fn usage_of(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.trim_start_matches("error: ").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use leasehold_server::{ConfigError, ExitReport};

    use super::*;

    #[test]
    fn a_start_that_cannot_be_configured_ends_with_2_and_any_other_with_1() {
        let config = ConfigError::UnknownKey { key: "x".to_owned(), place: "leasehold.toml".to_owned() };
        let error = CliError::from(StartError::from(config));
        assert_eq!((error.exit(), error.code()), (Exit::Usage, ErrorCode::InvalidConfiguration));
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = CliError::from(StartError::Local { action: "create", path: "/x".into(), source });
        assert_eq!((error.exit(), error.code()), (Exit::Failed, ErrorCode::LocalIo));
        assert_eq!(error.line(), "failed to create /x: permission denied");
    }

    #[test]
    fn what_was_not_flushed_has_an_exit_of_its_own() {
        let report = ExitReport { not_flushed: vec!["acme/a".parse().unwrap()], abandoned: false };
        let error = CliError::Serve(ServeError::NotFlushed(report));
        assert_eq!(error.exit(), Exit::NotFlushed);
        assert!(error.line().contains("acme/a"));
        let _: &dyn Error = &Arc::new(error);
    }

    #[test]
    fn a_line_is_one_line() {
        let error = CliError::NotAReplica {
            endpoint: "http://127.0.0.1:1".parse().unwrap(),
            detail: "\u{1b}[2J\nboo".to_owned(),
        };
        assert!(!error.line().contains(['\n', '\u{1b}']));
    }
}
