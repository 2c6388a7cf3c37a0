//! The laws are asked for: a reader that breaks one is found, whatever else it does right.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use leasehold_fuzz::{Format, Plan, Read, assert_reached, same_json};
use tempfile::TempDir;

/// Reads bytes, one way or another.
type Reader<'a> = &'a dyn Fn(&[u8]) -> Read;

const PLAN: Plan = Plan { cases: 2_000, seed: 1 };

fn corpus(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join("number").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

fn numbers() -> TempDir {
    corpus(&[("valid/seven", b"{\"n\":7}"), ("refused/none", b"")])
}

/// A reader of `{"n": <number>}` that breaks no law.
fn right(bytes: &[u8]) -> Read {
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Number {
        n: u32,
    }
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err("it is no object".to_owned());
    }
    let number: Number = serde_json::from_slice(bytes)
        .map_err(|error| error.to_string().chars().take(200).collect::<String>())?;
    Ok(serde_json::to_vec(&number).unwrap())
}

/// What the run says where it fails.
fn said(dir: &Path, read: Reader<'_>) -> Option<String> {
    let format = Format { name: "number", read, is_same: &same_json };
    let ended = panic::catch_unwind(AssertUnwindSafe(|| format.hold_to(dir, PLAN)));
    ended.err().map(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

fn value(bytes: &[u8]) -> Option<serde_json::Value> {
    serde_json::from_slice(bytes).ok()
}

#[test]
fn a_reader_that_breaks_no_law_is_held() {
    assert_eq!(said(numbers().path(), &right), None);
}

#[test]
fn each_broken_law_is_found_and_what_broke_it_is_kept() {
    let readers: [(&str, Reader<'_>); 5] = [
        ("a panic", &|bytes| {
            assert!(value(bytes).is_none_or(|value| value["n"].as_i64().is_none_or(|n| n >= 0)), "too low");
            right(bytes)
        }),
        ("an unknown member that is dropped", &|bytes| {
            let Some(value) = value(bytes) else { return right(bytes) };
            value["n"].as_u64().map(|n| format!("{{\"n\":{n}}}").into_bytes()).ok_or_else(String::new)
        }),
        ("a number that is cut", &|bytes| {
            let Some(value) = value(bytes) else { return right(bytes) };
            let n = value["n"].as_u64().ok_or_else(String::new)?;
            right(format!("{{\"n\":{}}}", n & 0xff).as_bytes())
        }),
        ("a list that is taken for an object", &|bytes| match value(bytes) {
            Some(serde_json::Value::Array(items)) if items.len() == 1 => {
                right(format!("{{\"n\":{}}}", items[0]).as_bytes())
            }
            _ => right(bytes),
        }),
        ("a way back that is refused", &|bytes| match value(bytes) {
            Some(_) if bytes.first() == Some(&b' ') => Err("white space".to_owned()),
            Some(value) if value["n"].as_u64().is_some_and(|n| n > 7) => {
                Ok(format!(" {}", String::from_utf8_lossy(&right(bytes)?)).into_bytes())
            }
            _ => right(bytes),
        }),
    ];
    for (what, read) in readers {
        let dir = numbers();
        let said = said(dir.path(), read).unwrap_or_else(|| panic!("{what} is not found"));
        assert!(said.contains("--seed 1 --cases 2000 --format number"), "{what}: {said}");
        let kept: Vec<_> = fs::read_dir(dir.path().join("number/found")).unwrap().collect();
        assert_eq!(kept.len(), 1, "{what}: {said}");
        // From then on it is the first to be asked.
        let again = self::said(dir.path(), read).unwrap_or_default();
        assert!(again.contains("number/found/"), "{what}: {again}");
        assert_eq!(self::said(dir.path(), &right), None, "{what}: mended, and the input stays");
    }
    let long = said(numbers().path(), &|bytes| {
        right(bytes).map_err(|_| String::from_utf8_lossy(bytes).into_owned())
    });
    assert!(long.unwrap().contains("refused by"));
}

#[test]
fn a_corpus_is_what_it_says_and_nothing_of_it_is_passed_over() {
    for (files, what) in [
        (vec![("valid/seven", &b"{\"n\":7}"[..])], "has no file"),
        (vec![("refused/none", &b""[..])], "has no file"),
        (vec![("valid/none", &b""[..]), ("refused/none", b"")], "whether"),
        (vec![("valid/seven", &b"{\"n\":7}"[..]), ("refused/eight", b"{\"n\":8}")], "whether"),
        (
            vec![("valid/seven", &b"{\"n\":7}"[..]), ("refused/none", b""), ("odd/none", b"")],
            "is read by nothing",
        ),
    ] {
        let dir = corpus(&files);
        let said = said(dir.path(), &right).unwrap_or_default();
        assert!(said.contains(what), "{files:?}: {said}");
    }
    let dir = numbers();
    assert_reached(dir.path(), &["number"]);
    for formats in [&[][..], &["number", "other"], &["other"]] {
        assert!(panic::catch_unwind(|| assert_reached(dir.path(), formats)).is_err(), "{formats:?}");
    }
}
