//! Ids, parsed once: nothing that is not a valid id can become a path, an object key or a row.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is not the id it was given as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not {what}: {rule}")]
pub struct IdError {
    /// What it should have been, with its article.
    what: &'static str,
    /// What such an id looks like.
    rule: &'static str,
    /// The text, cut to what a log line can bear.
    shown: String,
}

const SLUG_RULE: &str = "1 to 64 of a-z, 0-9, `_` and `-`, beginning with a letter or a digit";
const LEN_MAX: usize = 64;

fn is_slug(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=LEN_MAX).contains(&bytes.len())
        && bytes.first().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || matches!(byte, b'_' | b'-'))
}

fn refuse(what: &'static str, rule: &'static str, text: &str) -> IdError {
    let mut shown: String =
        text.chars().take(LEN_MAX + 1).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    IdError { what, rule, shown }
}

macro_rules! slug {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                if is_slug(text) { Ok(Self(text.into())) } else { Err(refuse($what, SLUG_RULE, text)) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

slug! {
    /// An organization: `[a-z0-9][a-z0-9_-]{0,63}`.
    OrgSlug, "an organization"
}

slug! {
    /// A tenant of an organization, opaque: `[a-z0-9][a-z0-9_-]{0,63}`. Chosen by the service or derived from
    /// (issuer, subject) by a [`DerivationKey`](crate::DerivationKey).
    TenantId, "a tenant id"
}

slug! {
    /// One replica of the fleet: `[a-z0-9][a-z0-9_-]{0,63}`.
    ReplicaId, "a replica id"
}

slug! {
    /// What a service's API tokens are called by: `[a-z0-9][a-z0-9_-]{0,63}`. Two that are called alike are one service's.
    TokenName, "a token's name"
}

impl TenantId {
    /// The id of a digest: its 64 lower-case hexadecimal digits.
    pub(crate) fn from_digest(digest: &[u8; 32]) -> Self {
        Self(hex::encode(digest).into())
    }
}

/// What a lease is on, and the prefix of everything that a tenant has in the snapshot store: `org/tenant`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LeaseKey {
    org: OrgSlug,
    tenant: TenantId,
}

impl LeaseKey {
    /// The key of a tenant of an organization.
    #[must_use]
    pub const fn new(org: OrgSlug, tenant: TenantId) -> Self {
        Self { org, tenant }
    }

    /// The organization.
    #[must_use]
    pub const fn org(&self) -> &OrgSlug {
        &self.org
    }

    /// The tenant.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        &self.tenant
    }
}

impl FromStr for LeaseKey {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (org, tenant) =
            text.split_once('/').ok_or_else(|| refuse("a lease key", "<org>/<tenant>", text))?;
        Ok(Self { org: org.parse()?, tenant: tenant.parse()? })
    }
}

impl TryFrom<String> for LeaseKey {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<LeaseKey> for String {
    fn from(key: LeaseKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.org, self.tenant)
    }
}

impl fmt::Debug for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One attempt to acquire a lease. An acquisition whose answer was lost is recognised by it and adopted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenureId(Uuid);

impl TenureId {
    /// The id of this UUID.
    #[must_use]
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID.
    #[must_use]
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl FromStr for TenureId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Uuid::try_parse(text).map(Self).map_err(|_| refuse("a tenure id", "a UUID", text))
    }
}

impl fmt::Display for TenureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TenureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One attempt to write an object: 16 hexadecimal digits, part of an image's name and of the manifest that names it, so
/// that a put whose answer was lost is known again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AttemptId(u64);

impl AttemptId {
    /// The id of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

impl FromStr for AttemptId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        digits
            .then(|| u64::from_str_radix(text, 16).ok().map(Self))
            .flatten()
            .ok_or_else(|| refuse("an attempt id", "16 lower-case hexadecimal digits", text))
    }
}

impl TryFrom<String> for AttemptId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<AttemptId> for String {
    fn from(id: AttemptId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_leave_its_place_is_no_id() {
        let long = "a".repeat(10 * 1024);
        for text in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "A",
            "a.b",
            "-a",
            "_a",
            "é",
            "a b",
            "a\0",
            "a\n",
            &long,
            &"a".repeat(65),
        ] {
            let error = text.parse::<TenantId>().unwrap_err();
            assert!(error.to_string().len() < 300, "the message is bounded");
            assert!(text.parse::<OrgSlug>().is_err() && text.parse::<ReplicaId>().is_err(), "{text:?}");
            assert!(format!("acme/{text}").parse::<LeaseKey>().is_err(), "{text:?}");
        }
        assert!("acme".parse::<LeaseKey>().is_err() && "acme/a/b".parse::<LeaseKey>().is_err());
    }

    #[test]
    fn what_is_an_id_comes_back_as_it_was() {
        for text in ["a", "0", "a-b_c", &"a".repeat(64)] {
            assert_eq!(text.parse::<TenantId>().unwrap().as_str(), text);
        }
        let key: LeaseKey = "acme/user-1".parse().unwrap();
        assert_eq!(
            (key.org().as_str(), key.tenant().as_str(), key.to_string().as_str()),
            ("acme", "user-1", "acme/user-1")
        );
        assert_eq!(serde_json::from_str::<LeaseKey>("\"acme/user-1\"").unwrap(), key);
        assert!(serde_json::from_str::<LeaseKey>("\"acme/../x\"").is_err());
        let attempt = AttemptId::new(0xab);
        assert_eq!(attempt.to_string(), "00000000000000ab");
        assert_eq!("00000000000000ab".parse(), Ok(attempt));
        assert!("00000000000000AB".parse::<AttemptId>().is_err() && "ab".parse::<AttemptId>().is_err());
    }

    proptest! {
        #[test]
        fn an_accepted_id_is_one_plain_path_segment(text in "\\PC{0,80}") {
            if let Ok(id) = text.parse::<TenantId>() {
                let path = std::path::Path::new(id.as_str());
                prop_assert_eq!(path.components().count(), 1);
                prop_assert!(matches!(path.components().next(), Some(std::path::Component::Normal(_))));
            }
        }
    }
}
