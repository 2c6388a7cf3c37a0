//! JSON that is kept as it came, and what of it counts for sameness.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How deep a payload may be nested. `SQLite`'s own JSON functions stop at 1,000, common parsers at 128.
pub(crate) const DEPTH_MAX: usize = 100;

/// A JSON document, checked once and kept byte for byte: numbers keep every digit and keys their order.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The document of this text.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// The document's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether it is nested no deeper than [`DEPTH_MAX`].
    pub(crate) fn is_shallow(&self) -> bool {
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        for byte in self.as_str().bytes() {
            match (in_string, byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (_, b'"') => in_string = !in_string,
                (false, b'[' | b'{') => depth += 1,
                (false, b']' | b'}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH_MAX {
                return false;
            }
        }
        true
    }

    /// Whether each of its strings is a text. Half a surrogate pair (`\ud800`) passes for JSON and is none (RFC 8259, section 8.2): who
    /// reads the event later could not. Of a shallow document only.
    pub(crate) fn is_text(&self) -> bool {
        !self.as_str().contains("\\u") || self.write_canonical(&mut Vec::new()).is_ok()
    }

    /// Writes the form in which two documents of the same content are the same bytes: no white space, keys sorted (of
    /// equal keys the last one counts), strings with one spelling. Numbers keep their spelling, since reading them as
    /// floats would make different ones the same.
    pub(crate) fn write_canonical(&self, to: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        write_canonical(self.as_str().trim(), to)
    }
}

fn write_canonical(text: &str, to: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match text.as_bytes().first() {
        Some(b'{') => {
            // A key with an escape in it cannot be borrowed.
            let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text)?;
            to.push(b'{');
            for (at, (key, value)) in fields.iter().enumerate() {
                if at > 0 {
                    to.push(b',');
                }
                serde_json::to_writer(&mut *to, key)?;
                to.push(b':');
                write_canonical(value.get(), to)?;
            }
            to.push(b'}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            to.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    to.push(b',');
                }
                write_canonical(item.get(), to)?;
            }
            to.push(b']');
        }
        Some(b'"') => {
            let string: Cow<'_, str> = serde_json::from_str(text)?;
            serde_json::to_writer(&mut *to, &string)?;
        }
        _ => to.extend_from_slice(text.as_bytes()),
    }
    Ok(())
}

impl Default for Json {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        // A value's text is a document by construction.
        Self::parse(value.to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let mut bytes = Vec::new();
        Json::parse(text).unwrap().write_canonical(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn order_spacing_and_escapes_do_not_count() {
        assert_eq!(
            canonical(" { \"b\" : [1, {\"d\":2,\"c\":null} ], \"\\u0061\": \"\\u00e9\" } "),
            "{\"a\":\"é\",\"b\":[1,{\"c\":null,\"d\":2}]}"
        );
        assert_eq!(canonical("{\"a\":1,\"a\":2}"), "{\"a\":2}");
    }

    #[test]
    fn numbers_keep_every_digit() {
        assert_ne!(canonical("12345678901234567890123"), canonical("12345678901234567890124"));
        assert_ne!(canonical("1"), canonical("1.0"));
    }

    #[test]
    fn depth_is_counted_outside_of_strings() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Json::parse(nested(DEPTH_MAX)).unwrap().is_shallow());
        assert!(!Json::parse(nested(DEPTH_MAX + 1)).unwrap().is_shallow());
        assert!(Json::parse(format!("\"\\\"{}\"", "[".repeat(500))).unwrap().is_shallow());
    }
}
