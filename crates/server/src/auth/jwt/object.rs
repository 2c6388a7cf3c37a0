//! A JSON object each of whose names is there once.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, Error, MapAccess, Visitor},
};
use serde_json::Value;

/// The most members that are read.
const MEMBERS_MAX: usize = 128;

/// The members of an object. Of one that names something twice, two readers may believe different things: it is refused (RFC 8725, section 2.9).
#[derive(Debug, Default)]
pub(super) struct Object(pub(super) BTreeMap<String, Value>);

impl Object {
    /// Out of these bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A member that is a text where it is there; the error: it is something else.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, ()> {
        self.get(name).map(|value| value.as_str().ok_or(())).transpose()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if members.insert(name, value).is_some() || members.len() > MEMBERS_MAX {
                        return Err(A::Error::custom("a name is there twice, or there are too many"));
                    }
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
