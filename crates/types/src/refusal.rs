//! Why a gate said no.

use std::fmt;

/// A call that was refused before it did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The tenant is on its way out of this replica; nothing was executed, ask again and whoever holds it then answers.
    #[error("draining: the tenant is leaving this replica")]
    Draining,
    /// This tenure cannot prove that it holds the lease.
    #[error("fenced ({0})")]
    Fenced(FencedReason),
}

/// How a tenure came to be fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FencedReason {
    /// The deadline passed without a renewal; the tenure resumes if the lease is still its own.
    Lapsed,
    /// The lease store refused a renewal: another tenure holds the tenant.
    Lost,
    /// The snapshot store was sealed by a successor.
    Sealed,
    /// The tenure has ended and handed its lease back.
    Released,
}

impl FencedReason {
    /// The word of this reason in answers: `lapsed`, `lost`, `sealed` or `released`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lapsed => "lapsed",
            Self::Lost => "lost",
            Self::Sealed => "sealed",
            Self::Released => "released",
        }
    }
}

impl fmt::Display for FencedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lapsed => "the lease lapsed before it was renewed",
            Self::Lost => "the lease is another tenure's",
            Self::Sealed => "a successor sealed this epoch",
            Self::Released => "this tenure has ended",
        })
    }
}
