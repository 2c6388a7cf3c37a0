//! Tenant ids that do not show who they are.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::TenantId;

/// The 32-byte key under which (issuer, subject) becomes a tenant id.
///
/// Whoever has only ids learns neither issuer nor subject; whoever changes the key orphans every tenant, which is why
/// its [fingerprint](Self::fingerprint) is kept beside the leases.
#[derive(Clone)]
pub struct DerivationKey([u8; 32]);

/// A key that is not 32 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a derivation key is 32 bytes (64 hexadecimal digits)")]
pub struct DerivationKeyError;

impl DerivationKey {
    /// The key of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key of 64 hexadecimal digits; white space around them is ignored, as files end with a newline.
    pub fn from_hex(text: &str) -> Result<Self, DerivationKeyError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes).map_err(|_| DerivationKeyError)?;
        Ok(Self(bytes))
    }

    /// The tenant of a subject of an issuer: HMAC-SHA-256 (RFC 2104) over the length-framed pair, so that no two pairs
    /// share an input, as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn tenant(&self, issuer: &str, subject: &str) -> TenantId {
        TenantId::from_digest(&self.mac(b"leasehold tenant v1", &[issuer.as_bytes(), subject.as_bytes()]))
    }

    /// What may be shown of the key: 16 hexadecimal digits that tell two keys apart and give neither away.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(&self.mac(b"leasehold fingerprint v1", &[])[..8])
    }

    fn mac(&self, purpose: &[u8], fields: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0)
            .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
        for field in std::iter::once(&purpose).chain(fields) {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for DerivationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DerivationKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_keeps_neighbouring_fields_apart() {
        let key = DerivationKey::new([9; 32]);
        assert_ne!(key.tenant("ab", "c"), key.tenant("a", "bc"));
        assert_ne!(key.tenant("a", ""), key.tenant("", "a"));
        assert_ne!(key.tenant("a", "b"), DerivationKey::new([8; 32]).tenant("a", "b"));
    }

    #[test]
    fn the_derivation_is_pinned() {
        let key = DerivationKey::new([9; 32]);
        assert_eq!(
            key.tenant("https://idp.example/acme", "user-1").as_str(),
            "64ab36928dee2e14902d039292d5f6f04897b7a00817727510169dc596da2d0f"
        );
        assert_eq!(key.fingerprint(), "65f11935c14dbb16");
    }

    #[test]
    fn a_key_never_shows_itself() {
        let key = DerivationKey::from_hex(&format!("{}\n", "0a".repeat(32))).unwrap();
        assert!(!format!("{key:?}").contains("0a0a"));
        assert!(DerivationKey::from_hex("0a").is_err());
    }
}
