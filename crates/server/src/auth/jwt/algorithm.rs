//! The algorithms that are believed.

/// An algorithm of RFC 7518 or RFC 8037. A key has one, and a token that names another one is refused, whatever its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
    /// HMAC with SHA-256: by a key file alone, never by a key set.
    Hs256,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Rs256, Self::Es256, Self::EdDsa, Self::Hs256];

    /// The name in a token's header.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Hs256 => "HS256",
        }
    }

    /// The one of this name. `none` is nobody's, and so is everything else.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}
