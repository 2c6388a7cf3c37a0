//! Whatever a caller sends: events, statements and values are what their JSON says, or refused; and a salvaged file is a ledger or none.

use std::{fs, path::Path};

use leasehold_fuzz::{Format, Plan, Read, assert_reached, near, same_json, same_json_by};
use leasehold_ledger::{
    FileFacts, Limits, NewEvent, Salvage, Statement, Value, ledger_path, salvage, salvages,
};
use leasehold_types::Timestamp;
use proptest::{arbitrary::any, prelude::Strategy as _, prop_assert_eq, test_runner::TestCaseError};
use serde_json::value::RawValue;

use crate::fixture::World;

fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"))
}

#[test]
fn every_file_of_the_corpus_is_asked() {
    assert_reached(corpus(), &["events", "statement", "value"]);
}

fn moment(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millis)
}

#[test]
fn events_are_what_their_json_says() {
    let limits = Limits::default();
    let read = |bytes: &[u8]| {
        let batch = NewEvent::batch_from_json(bytes, limits.batch_events_max).map_err(|error| cut(&error))?;
        NewEvent::check_batch(&batch, &limits).map_err(|error| error.to_string())?;
        let is_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        let written = if is_list { serde_json::to_vec(&batch) } else { serde_json::to_vec(&batch[0]) };
        written.map_err(|error| error.to_string())
    };
    let is_same = |input: &[u8], written: &[u8]| {
        same_json_by(input, written, |one, other| moment(one).is_some_and(|one| Some(one) == moment(other)))
    };
    Format { name: "events", read: &read, is_same: &is_same }.hold(corpus());
}

/// What serde says of a name that it does not know is as long as the name; who answers a caller cuts it.
fn cut(error: &serde_json::Error) -> String {
    error.to_string().chars().take(1_000).collect()
}

/// What a statement's JSON says, its numbers as they are written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    sql: String,
    #[serde(default)]
    params: Vec<Box<RawValue>>,
}

impl Said {
    /// As lists, in which a boolean is the number that it is as a parameter.
    fn plain(json: &[u8]) -> Option<String> {
        let Self { sql, params } = serde_json::from_slice(json).ok()?;
        let params = params.iter().map(|param| match param.get() {
            "true" => "1",
            "false" => "0",
            other => other,
        });
        Some(format!("[{},[{}]]", serde_json::to_string(&sql).ok()?, params.collect::<Vec<_>>().join(",")))
    }
}

#[test]
fn a_statement_is_what_its_json_says() {
    let read = |bytes: &[u8]| -> Read {
        let read: Statement = serde_json::from_slice(bytes).map_err(|error| cut(&error))?;
        serde_json::to_vec(&read).map_err(|error| error.to_string())
    };
    let is_same = |input: &[u8], written: &[u8]| {
        let is_object = input.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let (input, written) = (Said::plain(input), Said::plain(written));
        is_object
            && input.zip(written).is_some_and(|(one, other)| same_json(one.as_bytes(), other.as_bytes()))
    };
    Format { name: "statement", read: &read, is_same: &is_same }.hold(corpus());
}

/// A value goes through the database: as a parameter, and back as a result.
fn there_and_back(world: &World, value: &Value) -> Result<Value, String> {
    let rows = world.ledger.query(&world.gate, "SELECT ?1", std::slice::from_ref(value));
    let rows = rows.map_err(|error| format!("{}: {error}", error.code().as_str()))?;
    Ok(rows.rows[0][0].clone())
}

#[test]
fn a_value_is_what_its_json_says_after_the_database_too() {
    let world = World::new();
    let read = |bytes: &[u8]| -> Read {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| cut(&error))?;
        let back = there_and_back(&world, &value)?;
        assert_eq!(back, value);
        serde_json::to_vec(&back).map_err(|error| error.to_string())
    };
    let is_same = |input: &[u8], written: &[u8]| {
        let plain = match input.trim_ascii() {
            b"true" => b"1",
            b"false" => b"0",
            other => other,
        };
        same_json(plain, written)
    };
    Format { name: "value", read: &read, is_same: &is_same }.hold(corpus());
}

#[test]
fn every_value_comes_back_from_the_database_as_it_went() {
    let world = World::new();
    let values = proptest::prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Real),
        proptest::collection::vec(any::<u8>(), 0..64).prop_map(Value::Blob),
        any::<String>().prop_map(Value::Text),
        proptest::prelude::Just(Value::Null),
    ];
    let asked = Plan::of_environment().runner().run(&values, |value| {
        let back = there_and_back(&world, &value).map_err(TestCaseError::fail)?;
        match &value {
            // SQL has no number that is none.
            Value::Real(real) if real.is_nan() => prop_assert_eq!(back, Value::Null),
            _ => prop_assert_eq!(&back, &value),
        }
        let json = serde_json::to_string(&value).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let parsed: Value =
            serde_json::from_str(&json).map_err(|error| TestCaseError::fail(error.to_string()))?;
        match value {
            Value::Real(real) if !real.is_finite() => prop_assert_eq!(parsed, Value::Null),
            value => prop_assert_eq!(parsed, value),
        }
        Ok(())
    });
    asked.unwrap();
}

/// A tenant root whose salvage is this file, and it.
fn kept(root: &Path, bytes: &[u8]) -> Salvage {
    let entry = root.join("salvage").join("e00000007-1");
    fs::create_dir_all(&entry).unwrap();
    fs::write(ledger_path(&entry), bytes).unwrap();
    salvages(root).unwrap().remove(0)
}

#[test]
fn a_salvaged_file_is_a_ledger_or_a_typed_error_and_never_less() {
    let world = World::new();
    world.append(&["a", "b", "c"]);
    world.ledger.close();
    salvage(world.dir.path(), "e00000001-1").unwrap().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image.db");
    salvages(world.dir.path()).unwrap()[0].export(&image).unwrap();
    let whole = fs::read(&image).unwrap();
    let plan = Plan::of_environment();
    // Each is some files and some checks of whole databases.
    let plan = Plan { cases: plan.cases.div_ceil(8), ..plan };
    let number = std::cell::Cell::new(0_u32);
    let asked =
        plan.runner().run(&near(vec![whole.clone(), Vec::new(), b"SQLite format 3\0".to_vec()]), |bytes| {
            number.set(number.get() + 1);
            let root = dir.path().join(number.get().to_string());
            let (kept, to) = (kept(&root, &bytes), root.join("exported.db"));
            let exported: Result<FileFacts, _> = kept.export(&to);
            match exported {
                Ok(facts) => prop_assert_eq!(fs::metadata(&to).unwrap().len(), facts.bytes),
                Err(error) => {
                    let said = format!("{}: {error}", error.code().as_str());
                    prop_assert_eq!(to.exists(), false, "{}", said);
                    prop_assert_eq!(said.len() < 1_000, true, "{}", said);
                }
            }
            fs::remove_dir_all(&root).unwrap();
            Ok(())
        });
    asked.unwrap();
    assert!(kept(&dir.path().join("whole"), &whole).export(&dir.path().join("whole.db")).is_ok());
}
