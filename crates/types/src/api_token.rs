//! API tokens: what a service shows, and what is kept of it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Entropy;

/// What every token begins with, so that people and secret scanners know it for one.
const PREFIX: &str = "lh_";
/// Hexadecimal digits of the public part.
const ID_LEN: usize = 16;
/// Hexadecimal digits of the secret part: 256 bits.
const SECRET_LEN: usize = 64;

/// The public part of a token: it tells two tokens apart in lists and logs, and opens nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenId(String);

/// A text that is no token, or no token's id. It does not show the text, which may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is lh_<16 hexadecimal digits>_<64 hexadecimal digits>, and its id the first of them")]
pub struct TokenError;

impl TokenId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenId({})", self.0)
    }
}

impl FromStr for TokenId {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        if is_hex(text, ID_LEN) { Ok(Self(text.to_owned())) } else { Err(TokenError) }
    }
}

impl TryFrom<String> for TokenId {
    type Error = TokenError;

    fn try_from(text: String) -> Result<Self, TokenError> {
        text.parse()
    }
}

impl From<TokenId> for String {
    fn from(id: TokenId) -> Self {
        id.0
    }
}

/// A token as a service shows it. Nothing that shows values shows its secret; [`Self::reveal`] does.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiToken {
    id: TokenId,
    text: String,
}

impl ApiToken {
    /// A fresh one of 256 random bits.
    #[must_use]
    pub fn mint(entropy: &Entropy) -> Self {
        let id = TokenId(hex::encode(&entropy.key_bytes()[..ID_LEN / 2]));
        let text = format!("{PREFIX}{id}_{}", hex::encode(entropy.key_bytes()));
        Self { id, text }
    }

    /// Whether a text claims to be a token by how it begins.
    #[must_use]
    pub fn is_claimed_by(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The public part.
    #[must_use]
    pub const fn id(&self) -> &TokenId {
        &self.id
    }

    /// The whole token, for whoever is to use it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// What is kept of it: SHA-256 of the whole token. A slow hash, as passwords need it, would guard nothing here: 256 random bits
    /// cannot be guessed at any speed, and every request would pay for it.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(&self.text).into())
    }
}

impl FromStr for ApiToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let (id, secret) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(TokenError)?;
        if !is_hex(secret, SECRET_LEN) {
            return Err(TokenError);
        }
        Ok(Self { id: id.parse()?, text: text.to_owned() })
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiToken({PREFIX}{}_***)", self.id)
    }
}

/// The hash of a token. It is compared in constant time, by who compares it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of these bytes, as they were kept.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(***)")
    }
}

fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_made_and_shows_only_its_id() {
        let token = ApiToken::mint(&Entropy::seeded(1));
        assert_eq!(token.reveal().parse(), Ok(token.clone()));
        assert_ne!(token, ApiToken::mint(&Entropy::seeded(2)));
        let secret = token.reveal().rsplit_once('_').unwrap().1;
        let shown = format!("{token:?} {:?} {:?}", token.hash(), token.id());
        assert!(shown.contains(token.id().as_str()) && !shown.contains(secret), "{shown}");
        assert!(!shown.contains(&hex::encode(token.hash().as_bytes())), "{shown}");
    }

    #[test]
    fn the_hash_is_pinned() {
        let token: ApiToken = format!("lh_{}_{}", "0a".repeat(8), "0b".repeat(32)).parse().unwrap();
        assert_eq!(
            hex::encode(token.hash().as_bytes()),
            hex::encode(Sha256::digest(format!("lh_{}_{}", "0a".repeat(8), "0b".repeat(32))))
        );
        assert_eq!(token.id().as_str(), "0a0a0a0a0a0a0a0a");
    }

    proptest! {
        #[test]
        fn nothing_but_a_token_is_one(text in ".{0,120}") {
            let read = text.parse::<ApiToken>();
            let looks = text.len() == PREFIX.len() + ID_LEN + 1 + SECRET_LEN && text.starts_with(PREFIX);
            prop_assert!(read.is_err() || looks);
        }

        #[test]
        fn a_changed_token_is_none_or_another(at in 0_usize..84, byte in 0_u8..128) {
            let token = ApiToken::mint(&Entropy::seeded(7));
            let mut bytes = token.reveal().as_bytes().to_vec();
            bytes[at] = byte;
            let changed = String::from_utf8(bytes).unwrap();
            if let Ok(other) = changed.parse::<ApiToken>() {
                prop_assert_eq!(changed == token.reveal(), other.hash() == token.hash());
            }
        }
    }
}
