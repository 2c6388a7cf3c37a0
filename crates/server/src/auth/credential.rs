//! What a request shows of who sent it.

use axum::http::{HeaderMap, header};
use leasehold_types::ApiToken;

/// The longest credential that is looked at, in bytes: beyond every token that a person's provider makes, and below what a head may have.
const BYTES_MAX: usize = 8 * 1024;

/// What stands in `Authorization`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credential<'a> {
    /// Nothing.
    Missing,
    /// A service's token.
    Token(ApiToken),
    /// What may be a person's.
    Jwt(&'a str),
    /// None that is used here: why.
    Unusable(&'static str),
}

impl<'a> Credential<'a> {
    /// Of a request's headers. One that is shown twice is none: whoever is in between might go by the other one.
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let value = match (shown.next(), shown.next()) {
            (None, _) => return Self::Missing,
            (Some(value), None) => value,
            (Some(_), Some(_)) => return Self::Unusable("`Authorization` is there more than once"),
        };
        if value.len() > BYTES_MAX {
            return Self::Unusable("the token is too long");
        }
        // The scheme's name is written in any case (RFC 9110, section 11.1).
        let token = value.to_str().ok().and_then(|text| text.split_once(' ')).and_then(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim_matches(' '))
        });
        match token {
            None => Self::Unusable("`Authorization` has to be `Bearer <token>`"),
            Some(token) if ApiToken::is_claimed_by(token) => {
                token.parse().map_or(Self::Unusable("the token is not valid"), Self::Token)
            }
            Some(token) => Self::Jwt(token),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use leasehold_fuzz::{Format, Read};
    use leasehold_types::Entropy;
    use proptest::prelude::*;

    use super::*;
    use crate::fuzz::corpus;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_token_is_a_credential() {
        let token = ApiToken::mint(&Entropy::seeded(1));
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let shown = headers(&[format!("{scheme} {}", token.reveal()).as_bytes()]);
            assert_eq!(Credential::of(&shown), Credential::Token(token.clone()));
        }
        assert_eq!(Credential::of(&headers(&[])), Credential::Missing);
        assert_eq!(Credential::of(&headers(&[b"Bearer a.b.c"])), Credential::Jwt("a.b.c"));
        let text = format!("Bearer {}", token.reveal());
        for shown in [
            &[&b"Basic dTpw"[..]][..],
            &[b"Bearer"],
            &[b"Bearer\xff a"],
            &[token.reveal().as_bytes()],
            &[text.as_bytes(), text.as_bytes()],
            &[b"Bearer a.b.c", text.as_bytes()],
            &[b"Bearer lh_"],
            &[&text.as_bytes()[..text.len() - 1]],
            &[format!("Bearer {}", "a".repeat(BYTES_MAX)).as_bytes()],
        ] {
            assert!(matches!(Credential::of(&headers(shown)), Credential::Unusable(_)), "{shown:?}");
        }
    }

    #[test]
    fn a_credential_is_the_shown_one_whatever_the_bytes() {
        let read = |bytes: &[u8]| -> Read {
            let mut shown = HeaderMap::new();
            shown.append(
                header::AUTHORIZATION,
                HeaderValue::from_bytes(bytes).map_err(|error| error.to_string())?,
            );
            match Credential::of(&shown) {
                Credential::Token(token) => Ok(format!("Bearer {}", token.reveal()).into_bytes()),
                Credential::Jwt(token) => Ok(format!("Bearer {token}").into_bytes()),
                Credential::Missing => panic!("it is there"),
                Credential::Unusable(why) => Err(why.to_owned()),
            }
        };
        let is_same = |input: &[u8], written: &[u8]| {
            let (input, written) =
                (std::str::from_utf8(input).unwrap(), std::str::from_utf8(written).unwrap());
            input[..7].eq_ignore_ascii_case("bearer ") && input[7..].trim_matches(' ') == &written[7..]
        };
        Format { name: "authorization", read: &read, is_same: &is_same }.hold(corpus());
    }

    proptest! {
        #[test]
        fn whatever_is_shown_is_read_or_refused(bytes in proptest::collection::vec(0x20_u8..=0xff, 0..200)) {
            prop_assume!(!bytes.contains(&0x7f));
            let shown = headers(&[&bytes]);
            if let Credential::Token(token) = Credential::of(&shown) {
                prop_assert!(String::from_utf8(bytes).unwrap().contains(token.reveal()));
            }
        }
    }
}
