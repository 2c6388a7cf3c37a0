//! Object keys and prefixes: plain segments with slashes between them, so that a key is a safe path in every backend and a
//! prefix never takes half a name (contract row P2).

use std::{fmt, str::FromStr, sync::Arc};

use leasehold_types::LeaseKey;

/// A text that is no object key, or no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not {what}: {rule}")]
pub struct BlobKeyError {
    shown: String,
    what: &'static str,
    rule: &'static str,
}

const LEN_MAX: usize = 512;
// A segment is a file's name in the directory backend (255 bytes on most file systems), and a level there is an open directory.
const SEGMENT_LEN_MAX: usize = 200;
const SEGMENTS_MAX: usize = 16;
const KEY_RULE: &str = "at most 16 segments of A-Z, a-z, 0-9, `.`, `_` and `-`, none with a dot at its beginning or end, \
                        of 200 bytes at the most, joined by `/`, 512 bytes at the most in all";
const PREFIX_RULE: &str = "a prefix ends on a segment: like a key, with a `/` at its end";

fn is_segment(segment: &str) -> bool {
    // Azure takes no segment that ends with a dot, and the directory backend keeps dotted names for itself.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=SEGMENT_LEN_MAX).contains(&segment.len())
        && !segment.starts_with('.')
        && !segment.ends_with('.')
        && segment.bytes().all(plain)
}

fn is_key(text: &str) -> bool {
    text.len() <= LEN_MAX && text.split('/').count() <= SEGMENTS_MAX && text.split('/').all(is_segment)
}

fn refuse(text: &str, what: &'static str, rule: &'static str) -> BlobKeyError {
    BlobKeyError {
        shown: text.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect(),
        what,
        rule,
    }
}

/// The name of an object, such as `acme/user-1/e00000001/base.json`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey(Arc<str>);

impl BlobKey {
    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands after `prefix`, if this key lies under it.
    #[must_use]
    pub fn under<'a>(&'a self, prefix: &BlobPrefix) -> Option<&'a str> {
        self.0.strip_prefix(prefix.as_str())
    }
}

impl FromStr for BlobKey {
    type Err = BlobKeyError;

    fn from_str(text: &str) -> Result<Self, BlobKeyError> {
        if is_key(text) { Ok(Self(text.into())) } else { Err(refuse(text, "an object key", KEY_RULE)) }
    }
}

/// A prefix of object keys that ends on a segment: `acme/`, never `acme`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobPrefix(Arc<str>);

impl BlobPrefix {
    /// Everything that a tenant has: `org/tenant/`.
    #[must_use]
    pub fn of_tenant(key: &LeaseKey) -> Self {
        // The ids of a lease key are plain segments by construction.
        Self(format!("{key}/").into())
    }

    /// The prefix as text, with the slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of `name` under this prefix.
    pub fn key(&self, name: &str) -> Result<BlobKey, BlobKeyError> {
        format!("{}{name}", self.0).parse()
    }

    /// The prefix of `name` under this prefix.
    pub fn prefix(&self, name: &str) -> Result<Self, BlobKeyError> {
        format!("{}{name}/", self.0).parse()
    }
}

impl FromStr for BlobPrefix {
    type Err = BlobKeyError;

    fn from_str(text: &str) -> Result<Self, BlobKeyError> {
        match text.strip_suffix('/') {
            Some(key) if is_key(key) => Ok(Self(text.into())),
            _ => Err(refuse(text, "a prefix of object keys", PREFIX_RULE)),
        }
    }
}

macro_rules! shown_as_text {
    ($($name:ident),*) => {$(
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
    )*};
}
shown_as_text!(BlobKey, BlobPrefix);
