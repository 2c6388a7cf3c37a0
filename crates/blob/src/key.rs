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

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Whatever a key or prefix is made of, joined to a root it is a path of plain names below it.
        #[test]
        fn no_key_or_prefix_leaves_a_root(text in "[a-zA-Z0-9._/\\\\\u{0}\u{e4}~ -]{0,40}|(\\.{0,3}/?[a-z]{0,2}/?){0,6}") {
            let paths = [
                text.parse::<BlobKey>().ok().map(|key| key.as_str().to_owned()),
                text.parse::<BlobPrefix>().ok().map(|prefix| prefix.as_str().to_owned()),
            ];
            for path in paths.into_iter().flatten() {
                prop_assert_eq!(&path, &text);
                let root = Path::new("/srv/objects");
                let joined = root.join(&path);
                let below = joined.strip_prefix(root);
                prop_assert!(below.is_ok_and(|below| below.components().count() > 0));
                prop_assert!(joined.components().skip(1).all(|part| matches!(part, Component::Normal(_))));
            }
        }

        #[test]
        fn a_key_under_a_prefix_is_the_prefix_and_a_name(
            dirs in prop::collection::vec("[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,6}[a-zA-Z0-9_-]", 1..6),
            name in "[a-z0-9]{1,6}",
        ) {
            let prefix: BlobPrefix = format!("{}/", dirs.join("/")).parse().unwrap();
            let key = prefix.key(&name).unwrap();
            prop_assert_eq!(key.under(&prefix), Some(name.as_str()));
            prop_assert_eq!(key.as_str().strip_prefix(prefix.as_str()), Some(name.as_str()));
            let deeper = prefix.prefix(&name).unwrap();
            let key = deeper.key("x").unwrap();
            prop_assert_eq!(key.under(&deeper), Some("x"));
            prop_assert!(key.under(&prefix).is_some());
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let long = "x".repeat(201);
        let deep = ["x"; 17].join("/");
        let much = ["x".repeat(200), "y".repeat(200), "z".repeat(111)].join("/");
        for text in [
            "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", ".a", "a/.b", "a.", "a./b",
            "a b", "a\\b", "a\0b", "\u{e4}", "a\n", "*", "a:b", &long, &deep, &much,
        ] {
            assert!(text.parse::<BlobKey>().is_err(), "{text}");
        }
        for text in ["a", "A_b-c.d", "a..b", "_floors/acme/u/e1", &"x".repeat(200), &["x"; 16].join("/")] {
            assert!(text.parse::<BlobKey>().is_ok(), "{text}");
        }
    }

    #[test]
    fn a_prefix_ends_on_a_segment() {
        for text in ["", "/", "acme", "acme//", "/acme/", "../", "acme/../", "acme/u"] {
            assert!(text.parse::<BlobPrefix>().is_err(), "{text}");
        }
        let prefix: BlobPrefix = "acme/".parse().unwrap();
        let names = ["acme/u", "acme2/u", "acme"].map(|key| key.parse::<BlobKey>().unwrap());
        assert_eq!(names.each_ref().map(|key| key.under(&prefix)), [Some("u"), None, None]);
        assert!(prefix.key("../x").is_err() && prefix.key("").is_err() && prefix.prefix("a//").is_err());
    }

    #[test]
    fn a_refusal_shows_what_was_refused_and_the_rule() {
        let error = format!("\u{7}{}", "x/".repeat(300)).parse::<BlobKey>().unwrap_err().to_string();
        assert!(error.starts_with("`\u{fffd}x/x/") && error.len() < 400, "{error}");
        assert!(error.contains("is not an object key: at most 16 segments"), "{error}");
        let error = "acme".parse::<BlobPrefix>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`acme` is not a prefix of object keys: a prefix ends on a segment: like a key, with a `/` at its end"
        );
    }
}
