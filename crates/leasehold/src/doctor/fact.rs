//! A fact, or why it is not known.

use std::io;

use leasehold_blob::BlobError;
use leasehold_lease::LeaseError;
use leasehold_server::ConfigError;

use super::{check::Check, finding::Finding};

/// What came of one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fact<T> {
    /// The answer.
    Known(T),
    /// There was none.
    Failed(Failure),
    /// It was not asked, for this reason: something before it failed.
    Unasked(String),
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// What went wrong. Never a secret.
    pub(super) what: String,
    /// What to do.
    pub(super) next: String,
}

impl<T> Fact<T> {
    /// It was not asked because another check failed.
    pub(super) fn after(check: Check) -> Self {
        Self::Unasked(format!("{} failed", check.id()))
    }

    /// The answer, if there is one.
    pub(super) const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            _ => None,
        }
    }

    /// The same of what is made of the answer.
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(make(value)),
            Self::Failed(failure) => Fact::Failed(failure),
            Self::Unasked(because) => Fact::Unasked(because),
        }
    }

    /// What `judge` thinks of the answer; without one the check failed, or is skipped.
    pub(super) fn judged(&self, check: Check, judge: impl FnOnce(&T) -> Finding) -> Finding {
        match self {
            Self::Known(value) => judge(value),
            Self::Failed(failure) => Finding::fail(check, &failure.what, &failure.next),
            Self::Unasked(because) => Finding::skipped(check, because),
        }
    }

    /// The same for a check whose failure is no news: it is told as a warning.
    pub(super) fn judged_mildly(&self, check: Check, judge: impl FnOnce(&T) -> Finding) -> Finding {
        match self {
            Self::Failed(failure) => Finding::warn(check, &failure.what, &failure.next),
            _ => self.judged(check, judge),
        }
    }
}

impl<T, E> From<Result<T, E>> for Fact<T>
where
    Failure: From<E>,
{
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(error) => Self::Failed(error.into()),
        }
    }
}

impl From<LeaseError> for Failure {
    fn from(error: LeaseError) -> Self {
        let next = match &error {
            LeaseError::Denied { .. } => {
                "let an administrator look at the role, its password and its grants; sql/README.md has the statements"
            }
            LeaseError::Misconfigured { .. } => "mend `postgres` in the configuration",
            LeaseError::Timeout { .. } => {
                "see whether a firewall swallows the connection, or whether the database is overloaded"
            }
            LeaseError::Unavailable { .. } => {
                "see that the database runs at this address and lets this machine in"
            }
            LeaseError::FormatTooNew { .. } => "use a newer build",
            LeaseError::Unmigrated { .. } => "run `leasehold migrate`",
            LeaseError::Full { .. } => "make room on the disk",
            LeaseError::Damaged { .. }
            | LeaseError::EpochsExhausted { .. }
            | LeaseError::Open { .. }
            | LeaseError::Unusable { .. } => "look at the file: restore it, or move it away",
        };
        Self { what: error.to_string(), next: next.into() }
    }
}

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Self {
        let next = match &error {
            BlobError::Settings { .. } | BlobError::InvalidKey(_) => "mend `azure` in the configuration",
            BlobError::Timeout { .. } => {
                "see whether a firewall swallows the connection, or whether the account is overloaded"
            }
            BlobError::Throttled { .. } => {
                "try again later; if it stays so, the account needs more throughput"
            }
            BlobError::Unavailable { .. } => {
                "see that the storage account is at this address, and that our identity is a Storage Blob Data Contributor there"
            }
            BlobError::Full { .. } => "make room on the disk",
            BlobError::TooLarge { .. } | BlobError::NameInUse { .. } | BlobError::Local { .. } => {
                "see that the store's directory lies on a local disk that this user can write"
            }
        };
        let mut what = error.to_string();
        if let BlobError::Local { source, .. } = &error {
            what = format!("{what}: {source}");
        }
        Self { what, next: next.into() }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self {
            what: error.to_string(),
            next: "set it where `leasehold serve` runs: in the file, or as a variable".into(),
        }
    }
}

/// A local file or directory that failed while something was done to it.
pub(super) fn local(action: &str, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room there",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "let the user that runs `leasehold serve` own it, on a file system that can be written"
        }
        _ => "give the replica another directory (`data_dir`), on a local disk",
    };
    Failure { what: format!("failed to {action}: {error}"), next: next.into() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::doctor::finding::Verdict;

    #[test]
    fn what_is_not_known_is_never_taken_for_good() {
        let failure = Failure { what: "it burns".into(), next: "run".into() };
        for (fact, verdict, found, next) in [
            (Fact::Known(()), Verdict::Ok, "fine", None),
            (Fact::Failed(failure), Verdict::Fail, "it burns", Some("run")),
            (Fact::after(Check::PostgresReach), Verdict::Skipped, "postgres.reach failed", None),
        ] {
            let judge = |(): &()| Finding::ok(Check::PostgresTls, "fine");
            let finding = fact.judged(Check::PostgresTls, judge);
            assert_eq!(
                (finding.verdict, finding.found.as_str(), finding.next.as_deref()),
                (verdict, found, next)
            );
            let mild = fact.judged_mildly(Check::PostgresTls, judge);
            assert_eq!(mild.verdict == Verdict::Warn, verdict == Verdict::Fail);
        }
    }

    #[test]
    fn each_failure_says_what_to_do() {
        let (action, detail) = ("connect".to_owned(), "x".to_owned());
        for (failure, next) in [
            (Failure::from(LeaseError::Denied { action: action.clone(), detail: detail.clone() }), "grants"),
            (LeaseError::Misconfigured { detail: detail.clone() }.into(), "`postgres`"),
            (
                LeaseError::Timeout { action: action.clone(), limit: Duration::from_secs(1) }.into(),
                "firewall",
            ),
            (LeaseError::Unavailable { action: action.clone(), detail: detail.clone() }.into(), "runs at"),
            (BlobError::Settings { setting: "container", detail: detail.clone() }.into(), "`azure`"),
            (BlobError::Timeout { action: action.clone(), limit: Duration::from_secs(1) }.into(), "firewall"),
            (BlobError::Throttled { action: action.clone(), retry_after: None }.into(), "later"),
            (BlobError::Unavailable { action, detail }.into(), "Contributor"),
            (local("write", &io::ErrorKind::StorageFull.into()), "room"),
            (local("write", &io::ErrorKind::PermissionDenied.into()), "own it"),
            (local("write", &io::ErrorKind::NotADirectory.into()), "data_dir"),
        ] {
            assert!(failure.next.contains(next), "{failure:?}");
        }
    }
}
