//! What is thought of one check.

use serde::Serialize;

use super::check::Check;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// What had to be known first is not: the finding says what.
    Skipped,
    /// It can be used, and somebody should know this.
    Warn,
    /// It cannot be trusted like this.
    Fail,
}

impl Verdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// A check, its verdict and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) check: Check,
    pub(super) verdict: Verdict,
    /// What was found. Never a secret.
    pub(super) found: String,
    /// What to do, where something is to be done.
    pub(super) next: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: Check, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, found: found.into(), next: None }
    }

    pub(super) fn skipped(check: Check, because: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Skipped, found: because.into(), next: None }
    }

    pub(super) fn warn(check: Check, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warn, found: found.into(), next: Some(next.into()) }
    }

    pub(super) fn fail(check: Check, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fail, found: found.into(), next: Some(next.into()) }
    }
}
