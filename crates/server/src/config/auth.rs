//! `[auth]`: who may call.

use std::time::Duration;

use serde::Deserialize;

use super::issuers::{IssuerSettings, check_issuers, issuers_of};
use crate::ConfigError;

/// The longest time between two looks at the tokens: so long a revocation may take to hold.
const REFRESH_MAX: Duration = Duration::from_secs(300);

/// The most that an issuer's clock may differ: it adds to each token's life.
const LEEWAY_MAX: Duration = Duration::from_secs(300);

/// Who may call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSettings {
    /// How callers are known.
    pub mode: AuthMode,
    /// Whether services are let in by the API tokens that the lease store keeps.
    pub tokens: bool,
    /// How often those are read anew: so long a revocation may take to hold, and a new token to be known.
    #[serde(with = "humantime_serde")]
    pub refresh_every: Duration,
    /// Whose tokens of people and agents are believed.
    #[serde(deserialize_with = "issuers_of")]
    pub issuers: Vec<IssuerSettings>,
    /// By how much an issuer's clock may differ from this machine's.
    #[serde(with = "humantime_serde")]
    pub leeway: Duration,
    /// Whether `/metrics` is open to who shows nothing.
    pub open_metrics: bool,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            mode: AuthMode::None,
            tokens: true,
            refresh_every: Duration::from_secs(5),
            issuers: Vec::new(),
            leeway: Duration::from_secs(30),
            open_metrics: false,
        }
    }
}

/// How callers are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMode {
    /// Not at all: only on a loopback address.
    #[default]
    None,
    /// Not at all, on any address, and the operator has said so: something in front of it knows them.
    NoneAcknowledged,
    /// By what each request shows: whoever shows nothing reaches the probes and nothing else.
    Required,
}

impl AuthSettings {
    /// Refuses what would let in nobody, or keep somebody in who was sent away.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, detail: &str| Err(ConfigError::Unusable { key, detail: detail.to_owned() });
        if self.mode == AuthMode::Required && !self.tokens && self.issuers.is_empty() {
            return refuse(
                "auth.mode",
                "`required` without `auth.tokens` and `auth.issuers` lets nobody in: leave `auth.tokens` on, or list an issuer",
            );
        }
        check_issuers(&self.issuers)?;
        if self.leeway > LEEWAY_MAX {
            return refuse(
                "auth.leeway",
                "more than five minutes, for which a token that has ended would still count",
            );
        }
        if self.refresh_every > REFRESH_MAX {
            return refuse(
                "auth.refresh_every",
                "more than five minutes, for which a revoked token would still be let in",
            );
        }
        Ok(())
    }
}
