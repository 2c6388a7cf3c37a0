//! Lists out of JSON that are read as far as anybody may use them.
//!
//! A number of one digit becomes a value of some tens of bytes, so a body within its bound could take many times as much once it is read.
//! One element more than is allowed is kept, by which what is checked afterwards knows.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, SeqAccess, Visitor},
};

use crate::{Limits, Statement, Value};

/// Reads a list, and keeps so many elements of it.
pub(crate) struct First<T> {
    kept_max: usize,
    of: PhantomData<T>,
}

impl<T> First<T> {
    /// One more than `max`.
    pub(crate) const fn beyond(max: usize) -> Self {
        Self { kept_max: max.saturating_add(1), of: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for First<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < self.kept_max {
            match list.next_element()? {
                Some(element) => kept.push(element),
                None => return Ok(kept),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(kept)
    }
}

/// The parameters of a statement: one more than [`Limits::params_max`] by default allows, at the most.
pub fn read_params<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    First::beyond(Limits::default().params_max).deserialize(deserializer)
}

/// The statements of an `execute`: one more than [`Limits::statements_max`] by default allows, at the most.
pub fn read_statements<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Statement>, D::Error> {
    First::beyond(Limits::default().statements_max).deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_to_its_end_and_kept_to_its_bound() {
        let read = |text: &str| {
            let mut json = serde_json::Deserializer::from_str(text);
            let kept = First::<u8>::beyond(2).deserialize(&mut json)?;
            json.end().map(|()| kept)
        };
        assert!(read("[]").unwrap().is_empty());
        assert_eq!(read("[1, 2]").unwrap(), [1, 2]);
        assert_eq!(
            read("[1, 2, 3, \"four\", [5]]").unwrap(),
            [1, 2, 3],
            "one more, and the rest is none of ours"
        );
        for text in ["[1, \"two\"]", "[1, 2, 3, 4", "{}", "[1] 2"] {
            assert!(read(text).is_err(), "{text}");
        }
        let many = format!("{{\"sql\":\"x\",\"params\":[{}0]}}", "0,".repeat(100_000));
        assert_eq!(serde_json::from_str::<Statement>(&many).unwrap().params.len(), 1_001);
    }
}
