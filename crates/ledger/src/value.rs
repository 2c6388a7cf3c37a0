//! SQL values and results, and how they look as JSON.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, Visitor},
    ser::SerializeMap as _,
};
use serde_json::value::RawValue;

use crate::Held;

/// A SQL value. As JSON: null, numbers and strings as themselves (integers at their full 64 bits), a blob as
/// `{"base64": "..."}`, a real that is not finite as null; `true` and `false` are read as 1 and 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// NULL.
    #[default]
    Null,
    /// A 64-bit signed integer.
    Integer(i64),
    /// A 64-bit float.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::ValueRef;
        Ok(rusqlite::types::ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Real(value) if value.is_finite() => serializer.serialize_f64(*value),
            Self::Null | Self::Real(_) => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blob(bytes) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("base64", &STANDARD.encode(bytes))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        match text.get().as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => number_of(text.get()).map_err(de::Error::custom),
            _ => serde_json::Deserializer::from_str(text.get())
                .deserialize_any(ValueVisitor)
                .map_err(de::Error::custom),
        }
    }
}

/// A number by its text. Of what comes ready-made, a whole one beyond 64 bits is a real with its last digits gone, and a real may be the
/// neighbour of the one that was written.
fn number_of(text: &str) -> Result<Value, String> {
    let shown = || text.chars().take(40).collect::<String>();
    let is_whole = text != "-0" && text.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    if is_whole {
        let refuse = |_| format!("{} does not fit a 64-bit signed integer", shown());
        return text.parse().map(Value::Integer).map_err(refuse);
    }
    let real = text.parse().ok().filter(|real: &f64| real.is_finite());
    real.map(Value::Real).ok_or_else(|| format!("{} is beyond what a 64-bit float can be", shown()))
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a boolean, a number, a string or {\"base64\": \"...\"}")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let (key, text) = map
            .next_entry::<String, String>()?
            .ok_or_else(|| de::Error::custom("an empty object is no SQL value"))?;
        if key != "base64" || map.next_key::<String>()?.is_some() {
            return Err(de::Error::custom("a blob is {\"base64\": \"...\"} and nothing else"));
        }
        STANDARD.decode(text).map(Value::Blob).map_err(de::Error::custom)
    }
}

/// What a reading statement answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The columns' names, in order.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`. Never cut short: a result past its bound is an error.
    pub rows: Vec<Vec<Value>>,
    /// What they hold of the process's memory.
    #[serde(skip)]
    pub held: Held,
}

/// One statement of an `execute`. As JSON: `{"sql": "...", "params": [...]}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Statement {
    /// Its text: exactly one statement.
    pub sql: String,
    /// Its parameters by position, as many as the text has.
    #[serde(default, deserialize_with = "crate::lists::read_params")]
    pub params: Vec<Value>,
}
leasehold_types::only_as_object!(Statement + Serialize);

impl Statement {
    /// The statement of this text and these parameters.
    #[must_use]
    pub fn new(sql: impl Into<String>, params: Vec<Value>) -> Self {
        Self { sql: sql.into(), params }
    }
}

/// What one statement of an `execute` did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    /// Rows that it inserted, updated or deleted itself, without those of triggers.
    pub rows_affected: u64,
    /// The rowid of the last row that it inserted; `None` when it inserted none.
    pub last_insert_rowid: Option<i64>,
    /// The columns' names, where it answers rows (`RETURNING`, `SELECT`).
    pub columns: Vec<String>,
    /// The rows that it answered.
    pub rows: Vec<Vec<Value>>,
}

/// What an `execute` did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecuteAnswer {
    /// One per statement, in order.
    pub results: Vec<Executed>,
    /// Whether this is the kept answer of an earlier call with the same idempotency key, and nothing was executed now.
    pub duplicate: bool,
    /// What the results hold of the process's memory.
    #[serde(skip)]
    pub held: Held,
}

/// Under which key an `execute` takes effect once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's key, 1 to 256 bytes. Keys of events are another space.
    pub key: String,
    /// A digest of what the key stands for; the same key with another digest is a mismatch.
    pub digest: [u8; 32],
}

impl IdempotencyKey {
    /// The key for these statements: the digest is taken over their texts and parameters.
    #[must_use]
    pub fn of(key: impl Into<String>, statements: &[Statement]) -> Self {
        use sha2::{Digest as _, Sha256};
        let mut digest = Sha256::new_with_prefix(b"leasehold execute v1\0");
        let mut field = |tag: u8, bytes: &[u8]| {
            digest.update([tag]);
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        };
        for statement in statements {
            field(b'S', statement.sql.as_bytes());
            for param in &statement.params {
                match param {
                    Value::Null => field(b'n', &[]),
                    Value::Integer(value) => field(b'i', &value.to_be_bytes()),
                    Value::Real(value) => field(b'r', &value.to_bits().to_be_bytes()),
                    Value::Text(text) => field(b't', text.as_bytes()),
                    Value::Blob(bytes) => field(b'b', bytes),
                }
            }
        }
        Self { key: key.into(), digest: digest.finalize().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_plain_json_both_ways() {
        for (value, json) in [
            (Value::Null, "null"),
            (Value::Integer(i64::MAX), "9223372036854775807"),
            (Value::Integer(i64::MIN), "-9223372036854775808"),
            (Value::Real(1.5), "1.5"),
            (Value::Text("a\"b".into()), "\"a\\\"b\""),
            (Value::Blob(vec![0, 255]), "{\"base64\":\"AP8=\"}"),
        ] {
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            assert_eq!(serde_json::from_str::<Value>(json).unwrap(), value);
        }
        assert_eq!(serde_json::to_string(&Value::Real(f64::INFINITY)).unwrap(), "null");
        assert_eq!(serde_json::from_str::<Value>("true").unwrap(), Value::Integer(1));
        let exact = 3.851_233_519_748_087_6e297;
        assert_eq!(serde_json::from_str::<Value>("3.8512335197480876e297").unwrap(), Value::Real(exact));
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for json in [
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "[]",
            "{}",
            "{\"hex\":\"00\"}",
            "{\"base64\":\"!\"}",
            "{\"base64\":\"AA==\",\"x\":1}",
        ] {
            assert!(serde_json::from_str::<Value>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_key_tells_statements_apart() {
        let of =
            |sql: &str, params: Vec<Value>| IdempotencyKey::of("k", &[Statement::new(sql, params)]).digest;
        let digests = [
            of("a", vec![]),
            of("b", vec![]),
            of("a", vec![Value::Null]),
            of("a", vec![Value::Integer(1)]),
            of("a", vec![Value::Real(1.0)]),
            of("a", vec![Value::Text("1".into())]),
            of("a", vec![Value::Blob(b"1".to_vec())]),
        ];
        for (at, digest) in digests.iter().enumerate() {
            assert!(!digests[at + 1..].contains(digest), "{at}");
        }
        assert_eq!(of("a", vec![Value::Null]), of("a", vec![Value::Null]));
    }
}
