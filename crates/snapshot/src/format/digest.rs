//! SHA-256 digests as the formats write them.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// A SHA-256 digest: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    pub(crate) fn finish(hasher: sha2::Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let mut bytes = [0; 32];
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        (lower && hex::decode_to_slice(&text, &mut bytes).is_ok())
            .then_some(Self(bytes))
            .ok_or("a SHA-256 digest is 64 lower-case hexadecimal digits")
    }
}
