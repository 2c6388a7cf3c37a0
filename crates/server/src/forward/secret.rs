//! The fleet's secret: what a replica shows the one that it forwards to.

use std::fmt;

use axum::http::HeaderValue;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

/// The shortest secret, in characters.
const LEN_MIN: usize = 16;

/// One or two secrets: both are accepted, the first one is sent, so that a fleet can change it while it serves.
#[derive(Clone)]
pub(crate) struct PeerSecrets {
    sent: HeaderValue,
    accepted: Vec<[u8; 32]>,
}

impl PeerSecrets {
    /// The secrets of a file's text, one a line. The error says what is wrong with the file, and shows nothing of it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.iter().any(|line| line.len() < LEN_MIN || !line.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(format!(
                "has a line that is no secret: {LEN_MIN} or more visible ASCII characters without a space \
                 (`openssl rand -hex 32`)"
            ));
        }
        match lines[..] {
            [] => Err("is empty".to_owned()),
            [first] | [first, _] => {
                let mut sent = HeaderValue::from_str(first).map_err(|_| "cannot be sent".to_owned())?;
                sent.set_sensitive(true);
                Ok(Self { sent, accepted: lines.iter().map(|line| digest(line.as_bytes())).collect() })
            }
            _ => Err("has three lines or more: one secret is sent and one other accepted".to_owned()),
        }
    }

    /// What this replica shows.
    pub(crate) fn sent(&self) -> HeaderValue {
        self.sent.clone()
    }

    /// Whether `shown` is one of them. How long it takes tells nothing of them.
    pub(crate) fn accepts(&self, shown: &[u8]) -> bool {
        let shown = digest(shown);
        let accepted = self.accepted.iter().fold(Choice::from(0), |any, one| any | one.ct_eq(&shown));
        accepted.into()
    }
}

impl fmt::Debug for PeerSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_accepted_and_the_first_is_sent() {
        let secrets = PeerSecrets::parse("a-new-secret-of-ours\n\nthe-old-secret-of-ours\n").unwrap();
        assert_eq!(secrets.sent(), "a-new-secret-of-ours");
        assert!(secrets.accepts(b"a-new-secret-of-ours") && secrets.accepts(b"the-old-secret-of-ours"));
        for other in ["", "a-new-secret-of-our", "a-new-secret-of-ours ", "the-old-secret-of-ourS"] {
            assert!(!secrets.accepts(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{secrets:?} {:?}", secrets.sent()), "*** Sensitive");
    }
}
