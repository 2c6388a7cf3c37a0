//! Tokens judged: by the issuer that they name, its keys, and what they say.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::future::join_all;
use leasehold_types::{DerivationKey, LeaseKey, OrgSlug, Timer, Timestamp};

use super::{
    claims::{Expected, subject_of},
    compact::Compact,
    key::Key,
    key_set::KeySet,
    source::Source,
};
use crate::{
    app::App,
    auth::Caller,
    config::{AuthSettings, IssuerKeys, IssuerSettings},
    error::{ConfigError, StartError},
    tls::client_config,
};

/// What is said of a token whose signature is not right: no more than that.
const NOT_VALID: &str = "the token is not valid";

/// Everybody whose tokens are believed.
#[derive(Debug)]
pub(crate) struct Issuers {
    listed: Vec<Issuer>,
    leeway: Duration,
    derivation: DerivationKey,
}

#[derive(Debug)]
struct Issuer {
    settings: IssuerSettings,
    keys: KeySet,
}

impl Issuers {
    /// Those of the configuration, their keys read for the first time.
    pub(crate) async fn of(
        auth: &AuthSettings,
        derivation: &DerivationKey,
        timer: &dyn Timer,
    ) -> Result<Self, StartError> {
        let mut issuers = Vec::new();
        for settings in &auth.issuers {
            let unusable = |detail: String| ConfigError::Unusable {
                key: "auth.issuers",
                detail: format!("of {}: {detail}", settings.issuer),
            };
            let keys = match settings.keys()? {
                IssuerKeys::Secret(secret) => {
                    KeySet::fixed(Key::of_secret(&secret).map_err(|error| unusable(error.to_string()))?)
                }
                IssuerKeys::File(path) => KeySet::of(Source::File(path.to_owned()), timer)
                    .await
                    .map_err(|error| unusable(format!("{}: {error}", path.display())))?,
                IssuerKeys::Url(url) => {
                    let tls = client_config(None).map_err(|error| unusable(error.to_string()))?;
                    KeySet::of(Source::of_url(url, tls), timer)
                        .await
                        .map_err(|error| unusable(error.to_string()))?
                }
            };
            issuers.push(Issuer { settings: settings.clone(), keys });
        }
        Ok(Self { listed: issuers, leeway: auth.leeway, derivation: derivation.clone() })
    }

    /// Reads every issuer's keys once more.
    #[cfg(test)]
    pub(super) async fn refresh(&self, timer: &dyn Timer) {
        for issuer in &self.listed {
            issuer.keys.refresh(timer).await;
        }
    }

    /// Who shows this token; the error says why nobody is known by it.
    ///
    /// It names its issuer, which says by which keys it is judged. Before its signature is right nothing else of it counts, and no more is said of it.
    pub(crate) fn caller_of(&self, token: &str, now: Timestamp) -> Result<Arc<Caller>, &'static str> {
        let token = Compact::read(token).ok_or(NOT_VALID)?;
        let named = token.claims.text("iss").ok().flatten().ok_or(NOT_VALID)?;
        let issuer = self.listed.iter().find(|issuer| issuer.settings.issuer == named).ok_or(NOT_VALID)?;
        issuer.check_signature(&token)?;
        let settings = &issuer.settings;
        let (issuer, audience) = (settings.issuer.as_str(), settings.audience.as_str());
        let expected = Expected { issuer, audience, now, leeway: self.leeway };
        let subject = subject_of(&token.claims, &expected)?;
        let org = org_of(settings, &token).ok_or("the token is of no organization that is let in")?;
        let tenant = self.derivation.tenant(&settings.issuer, subject);
        Ok(Arc::new(Caller::person(LeaseKey::new(org, tenant))))
    }
}

impl Issuer {
    fn check_signature(&self, token: &Compact<'_>) -> Result<(), &'static str> {
        let keys = self.keys.now();
        let is_meant = |key: &&Key| match (&token.key_id, &key.id) {
            (Some(named), Some(id)) => named == id,
            // Without a name on either side the only key is meant, and of several none.
            (_, None) | (None, Some(_)) => keys.len() == 1,
        };
        let mut meant = keys.iter().filter(is_meant).peekable();
        if meant.peek().is_none() {
            self.keys.miss();
            return Err(NOT_VALID);
        }
        let made =
            meant.any(|key| key.algorithm() == token.algorithm && key.made(token.signed, &token.signature));
        if made { Ok(()) } else { Err(NOT_VALID) }
    }
}

/// The organization of a token's person.
fn org_of(settings: &IssuerSettings, token: &Compact<'_>) -> Option<OrgSlug> {
    let Some(claim) = &settings.organization_claim else { return settings.organization.clone() };
    let org: OrgSlug = token.claims.text(claim).ok()??.parse().ok()?;
    settings.organizations.contains(&org).then_some(org)
}

/// Keeps all issuers' keys fresh until it is dropped.
pub(crate) async fn keep_keys(app: Arc<App>) -> Infallible {
    if let Some(issuers) = app.knowledge.issuers() {
        join_all(issuers.listed.iter().map(|issuer| issuer.keys.keep(app.timer.as_ref(), &app.entropy)))
            .await;
    }
    std::future::pending().await
}
