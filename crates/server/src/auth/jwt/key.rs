//! The keys by which signatures are checked: of a key set (RFC 7517), each pinned to one algorithm by its type, or of a file.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
        UnparsedPublicKey,
    },
};
use serde::Deserialize;

use super::{algorithm::Algorithm, object::Object};

/// The most keys of a set.
const KEYS_MAX: usize = 64;
/// RSA moduli that are believed, in bytes: 2048 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1_024;
/// The shortest HMAC key, in bytes: as long as what it makes (RFC 7518, section 3.2).
pub(crate) const SECRET_BYTES_MIN: usize = 32;

/// Why keys cannot be used. It shows nothing of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    /// Not a set of keys.
    #[error("it is no JSON Web Key Set: an object whose `keys` are a list")]
    NoSet,
    /// A set without a key that could be used.
    #[error("it has no key for RS256, ES256 or EdDSA")]
    NoKey,
    /// A set of too many.
    #[error("it has more than {KEYS_MAX} keys")]
    TooMany,
    /// A secret that can be guessed.
    #[error("it is shorter than {SECRET_BYTES_MIN} bytes (`openssl rand -base64 48`)")]
    ShortSecret,
}

/// A key, and what it may be used for.
pub(super) struct Key {
    pub(super) id: Option<String>,
    material: Material,
}

enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    Hmac(hmac::Key),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .field("algorithm", &self.algorithm())
            .finish_non_exhaustive()
    }
}

impl Key {
    /// The only algorithm that it is used for.
    pub(super) const fn algorithm(&self) -> Algorithm {
        match &self.material {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
            Material::Ed25519(_) => Algorithm::EdDsa,
            Material::Hmac(_) => Algorithm::Hs256,
        }
    }

    /// The key of a file that holds a secret.
    pub(super) fn of_secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(KeyError::ShortSecret);
        }
        Ok(Self { id: None, material: Material::Hmac(hmac::Key::new(hmac::HMAC_SHA256, secret)) })
    }

    /// The keys of a set that can be used here. Those of other kinds are passed over, secret ones (`oct`) too: a secret that is published is none.
    pub(super) fn of_set(bytes: &[u8]) -> Result<Vec<Self>, KeyError> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Object>,
        }
        let set: Set = serde_json::from_slice(bytes).map_err(|_| KeyError::NoSet)?;
        if set.keys.len() > KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let keys: Vec<Self> = set.keys.iter().filter_map(Self::of_object).collect();
        if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) }
    }

    fn of_object(object: &Object) -> Option<Self> {
        let bytes = |name| URL_SAFE_NO_PAD.decode(object.text(name).ok()??).ok();
        if object.text("use").ok()?.is_some_and(|used_for| used_for != "sig") {
            return None;
        }
        let operations = object.get("key_ops").map(|operations| operations.as_array());
        if operations.is_some_and(|named| named.is_none_or(|named| !named.iter().any(|one| one == "verify")))
        {
            return None;
        }
        let material = match (object.text("kty").ok()??, object.text("crv").ok()?) {
            ("RSA", None) => {
                let (modulus, exponent) = (bytes("n")?, bytes("e")?);
                MODULUS_BYTES.contains(&modulus.len()).then_some(Material::Rsa { modulus, exponent })?
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                if (x.len(), y.len()) != (32, 32) {
                    return None;
                }
                // An uncompressed point (SEC 1, section 2.3.3).
                Material::P256([&[4], &x[..], &y[..]].concat())
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|point| point.len() == 32)?),
            _ => return None,
        };
        let key = Self { id: object.text("kid").ok()?.map(str::to_owned), material };
        // What it says it is for is what it is.
        let named = object.text("alg").ok()?;
        named.is_none_or(|named| named == key.algorithm().name()).then_some(key)
    }

    /// Whether it made this signature.
    pub(super) fn made(&self, signed: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }
                .verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
                .is_ok(),
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature).is_ok()
            }
            Material::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature).is_ok()
            }
            Material::Hmac(key) => hmac::verify(key, signed, signature).is_ok(),
        }
    }
}
