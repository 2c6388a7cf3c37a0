//! A connection string without what the client library does not know: libpq's stricter TLS modes and the roots' file.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::options::{TlsMode, misconfigured};
use crate::LeaseError;

/// A connection string taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// What is left for the client library.
    pub(super) rest: String,
    pub(super) tls_mode: Option<TlsMode>,
    pub(super) root_file: Option<PathBuf>,
}

impl Found {
    /// Takes a setting that is ours; `false`: it is not.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, LeaseError> {
        match name {
            "sslmode" => self.tls_mode = Some(value.parse()?),
            "sslrootcert" => self.root_file = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

pub(super) fn split(text: &str) -> Result<Found, LeaseError> {
    if ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        split_url(text)
    } else {
        split_pairs(text)
    }
}

fn split_url(text: &str) -> Result<Found, LeaseError> {
    let mut found = Found::default();
    let Some((before, query)) = text.split_once('?') else {
        return Ok(Found { rest: text.into(), ..found });
    };
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8_lossy();
        if !found.take(name, &value)? {
            kept.push(pair);
        }
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    found.rest = format!("{before}{mark}{}", kept.join("&"));
    Ok(found)
}

fn split_pairs(text: &str) -> Result<Found, LeaseError> {
    let broken = || misconfigured("it is neither a libpq URL nor libpq's key=value form");
    let mut found = Found::default();
    let mut kept = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(broken)?;
        let (value, value_len) = value_at(after.trim_start()).ok_or_else(broken)?;
        let end = rest.len() - after.trim_start().len() + value_len;
        if !found.take(name.trim_end(), &value)? {
            kept.push(&rest[..end]);
        }
        rest = rest[end..].trim_start();
    }
    found.rest = kept.join(" ");
    Ok(found)
}

/// The value that `text` begins with, and how many bytes of it that takes: quoted or up to a space, `\` before what is meant literally.
fn value_at(text: &str) -> Option<(String, usize)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next()?.1),
            '\'' if quoted => return Some((value, at + 1)),
            space if !quoted && space.is_whitespace() => return Some((value, at)),
            other => value.push(other),
        }
    }
    (!quoted).then_some((value, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rest: &str, tls_mode: TlsMode, root_file: &str) -> Found {
        Found { rest: rest.into(), tls_mode: Some(tls_mode), root_file: Some(root_file.into()) }
    }

    #[test]
    fn a_url_is_taken_apart() {
        let url =
            "postgres://a:b@h/d?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fetc%2Fmy%20root.pem";
        let rest = "postgres://a:b@h/d?connect_timeout=3";
        assert_eq!(split(url).unwrap(), found(rest, TlsMode::VerifyFull, "/etc/my root.pem"));
        let url = "postgresql://h/d?sslmode=verify-ca&sslrootcert=r";
        assert_eq!(split(url).unwrap(), found("postgresql://h/d", TlsMode::VerifyCa, "r"));
        assert_eq!(split("postgres://h/d").unwrap().rest, "postgres://h/d");
    }

    #[test]
    fn pairs_are_taken_apart() {
        let text = r"host=h password='it\'s = x' sslmode=verify-full  sslrootcert='/a b.pem' user = u\ v";
        let rest = r"host=h password='it\'s = x' user = u\ v";
        assert_eq!(split(text).unwrap(), found(rest, TlsMode::VerifyFull, "/a b.pem"));
        for broken in ["host", "host=h x", "password='a", "a=b\\"] {
            assert!(split(broken).is_err(), "{broken}");
        }
        assert_eq!(split("").unwrap(), Found::default());
    }
}
