//! `[[auth.issuers]]`: whose tokens of people and agents are believed.

use std::path::{Path, PathBuf};

use axum::http::Uri;
use leasehold_types::OrgSlug;
use serde::{Deserialize, Deserializer};

use super::secret::read_file;
use crate::{
    ConfigError,
    auth::{SECRET_BYTES_MIN, check_url},
};

const KEY: &str = "auth.issuers";
/// The most issuers: a token's is looked for among all of them.
const ISSUERS_MAX: usize = 32;

/// Who makes tokens, for whom, by which keys, and which organization its people are of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IssuerSettings {
    /// `iss`, to the letter.
    pub issuer: String,
    /// What has to be (among) `aud`.
    pub audience: String,
    /// The file of its key set (JWKS).
    pub keys_file: Option<PathBuf>,
    /// The address of its key set: https, or http from a loopback address.
    pub keys_url: Option<String>,
    /// The file of the secret that it shares with us (HS256); the end of its last line is not part of it.
    pub hmac_key_file: Option<PathBuf>,
    /// The organization of everybody whom it knows.
    pub organization: Option<OrgSlug>,
    /// The claim that names a person's organization.
    pub organization_claim: Option<String>,
    /// What that claim may name.
    pub organizations: Vec<OrgSlug>,
}

/// Where an issuer's keys come from.
#[derive(Debug)]
pub(crate) enum IssuerKeys<'a> {
    /// A key set in a file.
    File(&'a Path),
    /// A key set at an address.
    Url(Uri),
    /// A secret that both have.
    Secret(Vec<u8>),
}

impl IssuerSettings {
    fn unusable(&self, detail: &str) -> ConfigError {
        ConfigError::Unusable { key: KEY, detail: format!("{:?}: {detail}", self.issuer) }
    }

    /// Its keys' place; a secret is read.
    pub(crate) fn keys(&self) -> Result<IssuerKeys<'_>, ConfigError> {
        match (&self.keys_file, &self.keys_url, &self.hmac_key_file) {
            (Some(path), None, None) => Ok(IssuerKeys::File(path)),
            (None, Some(url), None) => {
                check_url(url).map(IssuerKeys::Url).map_err(|detail| self.unusable(detail))
            }
            (None, None, Some(path)) => {
                let secret = read_file(KEY, path)?.into_bytes();
                if secret.len() < SECRET_BYTES_MIN {
                    return Err(
                        self.unusable("the secret is shorter than 32 bytes (`openssl rand -base64 48`)")
                    );
                }
                Ok(IssuerKeys::Secret(secret))
            }
            _ => Err(self.unusable("set one of `keys_file`, `keys_url` and `hmac_key_file`")),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.issuer.is_empty() || self.audience.is_empty() {
            return Err(self.unusable("`issuer` and `audience` have to be set"));
        }
        match (&self.organization, &self.organization_claim, self.organizations.is_empty()) {
            (Some(_), None, true) | (None, Some(_), false) => {}
            _ => {
                return Err(self.unusable(
                    "set `organization`, or `organization_claim` and the `organizations` that it may name",
                ));
            }
        }
        if let IssuerKeys::File(path) = self.keys()? {
            read_file(KEY, path)?;
        }
        Ok(())
    }
}

/// Refuses issuers by which nobody could be known, or two people could be one.
pub(super) fn check_issuers(issuers: &[IssuerSettings]) -> Result<(), ConfigError> {
    if issuers.len() > ISSUERS_MAX {
        return Err(ConfigError::Unusable { key: KEY, detail: format!("more than {ISSUERS_MAX}") });
    }
    for (at, issuer) in issuers.iter().enumerate() {
        issuer.check()?;
        if issuers[..at].iter().any(|other| other.issuer == issuer.issuer) {
            return Err(issuer.unusable("it is listed twice"));
        }
    }
    Ok(())
}

/// A list of tables, or, as the environment has it, a text that is JSON.
pub(super) fn issuers_of<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<IssuerSettings>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        List(Vec<IssuerSettings>),
    }
    match Either::deserialize(deserializer) {
        Ok(Either::List(issuers)) => Ok(issuers),
        Ok(Either::Text(text)) => serde_json::from_str(&text).map_err(|error| {
            serde::de::Error::custom(format!("auth.issuers is no list as JSON has it: {error}"))
        }),
        Err(_) => Err(serde::de::Error::custom(
            "auth.issuers: each is a table of issuer, audience, keys_file, keys_url or hmac_key_file, organization, or \
             organization_claim and organizations",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const GOOD: &str = r#"{"issuer":"https://id.example/","audience":"leasehold","keys_url":"https://id.example/keys","organization":"acme"}"#;

    fn loaded(issuers: &str) -> Result<Config, ConfigError> {
        let variable = ("LEASEHOLD_AUTH__ISSUERS".to_owned(), issuers.to_owned());
        Config::load(None, [variable])
    }

    #[test]
    fn an_issuer_is_read_from_the_file_and_from_the_environment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leasehold.toml");
        std::fs::write(
            &path,
            "[auth]\nmode = \"required\"\ntokens = false\n[[auth.issuers]]\nissuer = \"https://id.example/\"\naudience = \"leasehold\"\n\
             keys_url = \"https://id.example/keys\"\norganization = \"acme\"\n",
        )
        .unwrap();
        let config = Config::load(Some(&path), []).unwrap();
        assert_eq!(config.auth.issuers, loaded(&format!("[{GOOD}]")).unwrap().auth.issuers);
        assert_eq!(config.auth.issuers[0].audience, "leasehold");
    }

    #[test]
    fn an_issuer_that_cannot_be_used_is_named() {
        let changed = |from: &str, to: &str| GOOD.replacen(from, to, 1);
        for issuer in [
            changed("https://id.example/keys", "http://id.example/keys"),
            changed(r#","organization":"acme""#, ""),
            changed(r#""organization":"acme""#, r#""organization":"acme","organization_claim":"org""#),
            changed(r#""organization":"acme""#, r#""organization_claim":"org""#),
            changed(r#""organization":"acme""#, r#""organization_claim":"org","organizations":[]"#),
            changed(r#""keys_url":"https://id.example/keys","#, ""),
            changed(r#""keys_url""#, r#""keys_file":"/nowhere","keys_url""#),
            changed(r#""keys_url":"https://id.example/keys""#, r#""keys_file":"/nowhere/keys""#),
            changed(r#""audience":"leasehold","#, ""),
            changed("acme", "Acme"),
            changed("audience", "audiences"),
        ] {
            let said = loaded(&format!("[{issuer}]")).unwrap_err().to_string();
            assert!(said.contains("auth.issuers"), "{issuer}: {said}");
        }
        assert!(loaded(&format!("[{GOOD},{GOOD}]")).unwrap_err().to_string().contains("twice"));
        assert!(loaded("https://id.example/").is_err());
    }
}
