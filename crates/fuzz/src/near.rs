//! What is made up: near what is valid, from nothing, and far too much.

use proptest::{
    arbitrary::any,
    collection::vec,
    prelude::{Just, prop_oneof},
    sample::{Index, select},
    strategy::{BoxedStrategy, Strategy},
};
use serde_json::Value;

/// What nobody means well by, in whatever place it stands: ways out of a directory, other alphabets and what looks like ours, ends of lines and
/// of texts, numbers at and past their bounds, what another format begins with.
const NASTY: [&[u8]; 40] = [
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc0\xaf",
    b"..",
    b"../",
    b"%2e%2e%2f",
    b"/",
    b"\\",
    b"-",
    b"--",
    b"_",
    b".",
    b"0",
    b"+1",
    b"-1",
    b"1e9",
    b"0x7",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"null",
    b"true",
    b"NaN",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"[",
    b"{",
    b"}",
    b",",
    b":",
    b"=",
    "\u{430}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{661}".as_bytes(),
];

/// One change to some bytes.
#[derive(Clone, Debug)]
enum Edit {
    Put(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Cut(Index),
    /// A node of a JSON text becomes something else.
    Node(Index, Turn),
}

/// What becomes of a node.
#[derive(Clone, Debug)]
enum Turn {
    Gone,
    Twice,
    Into(Value),
    Renamed(String),
    /// An object as the list of its values, which some readers take for it.
    Listed,
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = || any::<Index>();
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(NASTY.to_vec()).prop_map(|text| Value::from(String::from_utf8_lossy(text).into_owned())),
        Just(Value::Array(Vec::new())),
        Just(Value::Object(serde_json::Map::new())),
    ];
    let turn = prop_oneof![
        2 => Just(Turn::Gone),
        1 => Just(Turn::Twice),
        3 => value.prop_map(Turn::Into),
        1 => "[a-z_]{0,8}".prop_map(Turn::Renamed),
        1 => Just(Turn::Listed),
    ];
    prop_oneof![
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Put(at, byte)),
        2 => (at(), 0x20_u8..0x7f).prop_map(|(at, byte)| Edit::Put(at, byte)),
        3 => (at(), select(NASTY.to_vec())).prop_map(|(at, what)| Edit::Insert(at, what.to_vec())),
        2 => (at(), 1_usize..8).prop_map(|(at, len)| Edit::Remove(at, len)),
        2 => (at(), 1_usize..32).prop_map(|(at, len)| Edit::Repeat(at, len)),
        1 => at().prop_map(Edit::Cut),
        3 => (at(), turn).prop_map(|(at, turn)| Edit::Node(at, turn)),
    ]
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    let len = bytes.len();
    match edit {
        Edit::Put(at, byte) if len > 0 => bytes[at.index(len)] = *byte,
        Edit::Insert(at, what) => {
            let at = at.index(len + 1);
            bytes.splice(at..at, what.iter().copied());
        }
        Edit::Remove(at, count) if len > 0 => {
            let at = at.index(len);
            bytes.drain(at..(at + count).min(len));
        }
        Edit::Repeat(at, count) if len > 0 => {
            let at = at.index(len);
            let piece = bytes[at..(at + count).min(len)].to_vec();
            bytes.splice(at..at, piece);
        }
        Edit::Cut(at) => bytes.truncate(at.index(len + 1)),
        Edit::Node(at, turn) => {
            if let Ok(tree) = serde_json::from_slice::<Value>(bytes) {
                let at = at.index(count(&tree));
                bytes.clear();
                turned(&tree, &mut 0, at, turn, bytes);
            }
        }
        Edit::Put(..) | Edit::Remove(..) | Edit::Repeat(..) => {}
    }
}

/// The nodes of a tree.
fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Writes a tree, its node of the number `at` turned. `next` is the number of the node that comes next.
fn turned(tree: &Value, next: &mut usize, at: usize, turn: &Turn, to: &mut Vec<u8>) {
    let is_chosen = *next == at;
    *next += 1;
    match (tree, turn) {
        (_, Turn::Into(value)) if is_chosen => to.extend(value.to_string().bytes()),
        (Value::Object(members), Turn::Listed) if is_chosen => {
            let values: Vec<&Value> = members.values().collect();
            to.extend(serde_json::to_vec(&values).unwrap_or_default());
        }
        (Value::Array(items), _) => {
            to.push(b'[');
            let mut is_first = true;
            for item in items {
                turned_within(None, item, next, at, turn, &mut is_first, to);
            }
            to.push(b']');
        }
        (Value::Object(members), _) => {
            to.push(b'{');
            let mut is_first = true;
            for (name, member) in members {
                turned_within(Some(name), member, next, at, turn, &mut is_first, to);
            }
            to.push(b'}');
        }
        _ => to.extend(tree.to_string().bytes()),
    }
}

/// Writes a node that lies in another one: not at all, twice, under another name, or as it comes.
fn turned_within(
    name: Option<&str>,
    tree: &Value,
    next: &mut usize,
    at: usize,
    turn: &Turn,
    is_first: &mut bool,
    to: &mut Vec<u8>,
) {
    let is_chosen = *next == at;
    let times = match turn {
        Turn::Gone if is_chosen => 0,
        Turn::Twice if is_chosen => 2,
        _ => 1,
    };
    for _ in 0..times {
        if !std::mem::take(is_first) {
            to.push(b',');
        }
        if let Some(name) = name {
            let name = match turn {
                Turn::Renamed(other) if is_chosen => other,
                _ => name,
            };
            to.extend(Value::from(name).to_string().bytes());
            to.push(b':');
        }
        if times == 1 {
            turned(tree, next, at, turn, to);
        } else {
            to.extend(tree.to_string().bytes());
        }
    }
    if times != 1 {
        // Past it, so that no other one is taken for it.
        *next += 1;
    }
}

/// Bytes that are one to three changes away from one of `valid`.
pub fn near(valid: Vec<Vec<u8>>) -> BoxedStrategy<Vec<u8>> {
    (select(valid), vec(edit(), 1..4))
        .prop_map(|(mut bytes, edits)| {
            for edit in &edits {
                apply(&mut bytes, edit);
            }
            bytes
        })
        .boxed()
}

/// Bytes that are near nothing: any, those of a text, and pieces of what nobody means well by.
pub fn anything() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..120),
        "\\PC{0,60}".prop_map(String::into_bytes),
        vec(select(NASTY.to_vec()), 0..6).prop_map(|pieces| pieces.concat()),
    ]
    .boxed()
}

/// Far too much of something, alone and in the middle of what is valid: longer, deeper and more digits than anything has.
#[must_use]
pub fn too_much(valid: &[Vec<u8>]) -> Vec<Vec<u8>> {
    const LONG: usize = 1 << 20;
    let alone = [
        vec![b'a'; LONG],
        vec![b'9'; LONG],
        vec![0; LONG],
        b"[".repeat(LONG / 4),
        b"{\"a\":".repeat(LONG / 16),
        [b"[".repeat(LONG / 4), b"]".repeat(LONG / 4)].concat(),
        b"a.".repeat(LONG / 4),
        b"/".repeat(LONG / 4),
        [&b"{\""[..], &b"a".repeat(LONG), b"\":1}"].concat(),
        "\u{1f980}".repeat(LONG / 16).into_bytes(),
    ];
    let mut much: Vec<Vec<u8>> = alone.to_vec();
    for bytes in valid.iter().take(3) {
        let middle = bytes.len() / 2;
        for what in [&b"9"[..], b"a", b"[", b" "] {
            let mut long = bytes.clone();
            long.splice(middle..middle, what.repeat(LONG / 8));
            much.push(long);
        }
        much.push(bytes.repeat((LONG / 8 / bytes.len().max(1)).max(2)));
    }
    much
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree as _;

    use super::*;

    fn turned_at(tree: &str, at: usize, turn: &Turn) -> String {
        let tree: Value = serde_json::from_str(tree).unwrap();
        let mut to = Vec::new();
        turned(&tree, &mut 0, at, turn, &mut to);
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn one_node_is_turned_and_the_others_stay() {
        let tree = r#"{"a":[1,2],"b":{"c":3}}"#;
        for (at, turn, expected) in [
            (1, Turn::Gone, r#"{"b":{"c":3}}"#),
            (2, Turn::Gone, r#"{"a":[2],"b":{"c":3}}"#),
            (3, Turn::Twice, r#"{"a":[1,2,2],"b":{"c":3}}"#),
            (4, Turn::Twice, r#"{"a":[1,2],"b":{"c":3},"b":{"c":3}}"#),
            (4, Turn::Listed, r#"{"a":[1,2],"b":[3]}"#),
            (5, Turn::Into(Value::Null), r#"{"a":[1,2],"b":{"c":null}}"#),
            (5, Turn::Renamed("d".to_owned()), r#"{"a":[1,2],"b":{"d":3}}"#),
            (0, Turn::Into(Value::from(7)), "7"),
        ] {
            assert_eq!(turned_at(tree, at, &turn), expected, "{at} {turn:?}");
        }
        assert_eq!(count(&serde_json::from_str(tree).unwrap()), 6);
    }

    /// An index into whatever length.
    fn index(number: u8) -> Index {
        let mut runner = crate::Plan { cases: 1, seed: number.into() }.runner();
        any::<Index>().new_tree(&mut runner).unwrap().current()
    }

    #[test]
    fn every_change_is_made_to_every_length() {
        let at = index;
        for edit in [
            Edit::Put(at(3), b'x'),
            Edit::Insert(at(3), b"xy".to_vec()),
            Edit::Remove(at(3), 9),
            Edit::Repeat(at(3), 9),
            Edit::Cut(at(3)),
            Edit::Node(at(3), Turn::Gone),
        ] {
            for text in ["", "a", "[1,2,3]"] {
                let mut bytes = text.as_bytes().to_vec();
                apply(&mut bytes, &edit);
                assert!(bytes.len() <= text.len() * 2 + 2, "{edit:?} {text}");
            }
        }
    }
}
