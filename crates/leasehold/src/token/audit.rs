//! Who made or revoked a token, for whoever wants to know of it later.
//!
//! Replicas note that a token came or went and cannot know by whom: these verbs write to the store themselves. So they say it, on the
//! target of the replicas' own audit events.

use leasehold_types::{TokenId, TokenName};

use crate::environment;

/// Whoever runs the verb.
#[derive(Debug)]
pub(super) struct Operator(String);

impl Operator {
    /// As it was said, else the user of this process: its number, which the system vouches for, and what the environment calls it.
    pub(super) fn of(said: Option<String>) -> Self {
        Self(said.unwrap_or_else(|| {
            let uid = rustix::process::getuid().as_raw();
            let name = environment::variables().find(|(name, _)| name == "USER").map(|(_, user)| user);
            match name.filter(|user| !user.is_empty() && !user.contains(char::is_control)) {
                Some(user) => format!("{user} (uid {uid})"),
                None => format!("uid {uid}"),
            }
        }))
    }

    /// Notes that a token was made.
    pub(super) fn created(&self, id: &TokenId, name: &TokenName) {
        let Self(by) = self;
        tracing::info!(target: "leasehold_audit", action = "token_create", outcome = "done", token = %id, %name, by, "audit");
    }

    /// Notes that a token was taken away.
    pub(super) fn revoked(&self, id: &TokenId) {
        let Self(by) = self;
        tracing::info!(target: "leasehold_audit", action = "token_revoke", outcome = "done", token = %id, by, "audit");
    }
}
