//! Whether two JSON texts say the same.

use std::fmt;

use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Whether two JSON texts say the same: the same members with the same values, in any order. A member that is null may as well not be there. One
/// that is there twice counts twice: who reads it once has dropped something.
#[must_use]
pub fn same_json(one: &[u8], other: &[u8]) -> bool {
    same_json_by(one, other, |one, other| one == other)
}

/// The same, where `same_text` says which texts within them mean the same: one moment is written in several ways.
#[must_use]
pub fn same_json_by(one: &[u8], other: &[u8], same_text: impl Fn(&str, &str) -> bool) -> bool {
    let read =
        |text: &[u8]| serde_json::from_slice::<Box<RawValue>>(text).ok().and_then(|text| Tree::of(&text, 0));
    read(one).zip(read(other)).is_some_and(|(one, other)| same(&one, &other, &same_text))
}

/// How deep two texts are looked into: deeper than any reader of ours goes.
const DEPTH_MAX: usize = 256;

enum Tree {
    /// `null`, `true` and `false`.
    Word(String),
    /// As it is written: no digit of it is lost.
    Number(String),
    Text(String),
    List(Vec<Tree>),
    /// By their names, and of one name in their order.
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// `None`: it is no JSON, or deeper than it is looked into.
    fn of(text: &RawValue, depth: usize) -> Option<Self> {
        let text = text.get();
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match text.as_bytes().first()? {
            b'{' => {
                let Members(members) = serde_json::from_str(text).ok()?;
                let mut object = Vec::new();
                for (name, member) in members.into_iter().filter(|(_, member)| member.get() != "null") {
                    object.push((name, Self::of(&member, depth + 1)?));
                }
                object.sort_by(|(one, _), (other, _)| one.cmp(other));
                Self::Object(object)
            }
            b'[' => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text).ok()?;
                Self::List(items.iter().map(|item| Self::of(item, depth + 1)).collect::<Option<_>>()?)
            }
            b'"' => Self::Text(serde_json::from_str(text).ok()?),
            b'-' | b'0'..=b'9' => Self::Number(text.to_owned()),
            _ => Self::Word(text.to_owned()),
        })
    }
}

/// Whether two numbers are one: whole ones by their digits, others by the real that they are. A whole one is no real, but for `-0`.
fn same_number(one: &str, other: &str) -> bool {
    let is_whole = |text: &str| text != "-0" && !text.contains(['.', 'e', 'E']);
    if is_whole(one) || is_whole(other) {
        return one == other;
    }
    let real = |text: &str| text.parse::<f64>().ok().map(f64::to_bits);
    one == other || real(one) == real(other)
}

fn same(one: &Tree, other: &Tree, same_text: &impl Fn(&str, &str) -> bool) -> bool {
    match (one, other) {
        (Tree::Word(one), Tree::Word(other)) => one == other,
        (Tree::Number(one), Tree::Number(other)) => same_number(one, other),
        (Tree::Text(one), Tree::Text(other)) => one == other || same_text(one, other),
        (Tree::List(one), Tree::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other, same_text))
        }
        (Tree::Object(one), Tree::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((name, one), (other_name, other))| {
                    name == other_name && same(one, other, same_text)
                })
        }
        _ => false,
    }
}

/// The members of an object in their order, those that have one name too.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_say_the_same_are_the_same() {
        let same = |one: &str, other: &str| same_json(one.as_bytes(), other.as_bytes());
        assert!(same(r#"{"a":1,"b":[true,"x"]}"#, r#" { "b": [true, "\u0078"], "a": 1 } "#));
        assert!(same(r#"{"a":null}"#, "{}") && same("{}", r#"{"a":null}"#));
        assert!(same("1.50", "15e-1") && same("-0", "-0.0") && same("1e-9999", "0.0"));
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":2}"#),
            (r#"{"a":1}"#, r#"{"a":1.0}"#),
            ("18446744073709551616", "18446744073709551617"),
            ("18446744073709551616", "18446744073709552000.0"),
            ("3.8512335197480876e297", "3.851233519748088e297"),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":1,"b":2}"#, r#"{"a":1}"#),
            ("[1,2]", "[2,1]"),
            ("[1]", "[1,null]"),
            (r#"{"a":1,"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            ("{", "{"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
        assert!(same_json_by(br#"["A"]"#, br#"["a"]"#, str::eq_ignore_ascii_case));
    }
}
