//! The contract's rows, and which test holds which of them.
//!
//! A row is held by one test for each pair of backends, found by its path: `contract::<pair>::<row>_<words>`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The rows of the tenure contract (contract.md), as tests spell them.
pub const ROWS: [&str; 37] = [
    "h1",
    "h2",
    "h3",
    "h3b",
    "h4",
    "h5",
    "h6",
    "v1",
    "v2",
    "v3",
    "t1",
    "f1",
    "f2",
    "f3",
    "f4",
    "f5",
    "f6",
    "f7",
    "f8",
    "s1",
    "s2",
    "p1",
    "p2",
    "p3",
    "p4",
    "d1",
    "d2",
    "d3_abandon",
    "d3_forget",
    "d3_lost",
    "d4",
    "d5",
    "d6",
    "r1",
    "o1",
    "l1",
    "l2",
];

/// The pairs of backends that every row must be held for.
pub const PAIRS: [&str; 2] = ["embedded", CLOUD];

/// The pair that needs servers: leases in Postgres, objects in Azure Blob.
pub(crate) const CLOUD: &str = "cloud";

/// A set of tests that does not hold the rows one by one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// Rows without a test that would run.
    #[error("{} of {} contract rows have no test for the {pair} pair: {}", .missing.len(), ROWS.len(), .missing.join(", "))]
    Missing {
        /// The pair of backends.
        pair: String,
        /// The rows.
        missing: Vec<&'static str>,
    },
    /// A row is one test, so that its name says which rule broke.
    #[error("contract row {row} has {tests} tests for the {pair} pair; it must be one")]
    Several {
        /// The pair of backends.
        pair: String,
        /// The row.
        row: &'static str,
        /// How many tests.
        tests: usize,
    },
}

/// How many tests hold each row, by pair of backends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pairs: BTreeMap<String, BTreeMap<&'static str, usize>>,
}

impl Tally {
    /// Counts the rows among the paths of tests.
    pub fn of<'a>(tests: impl IntoIterator<Item = &'a str>) -> Self {
        let mut tally = Self::default();
        for (pair, row) in tests.into_iter().filter_map(row_of) {
            *tally.pairs.entry(pair.to_owned()).or_default().entry(row).or_default() += 1;
        }
        tally
    }

    /// Counts the rows among the tests that `cargo nextest list --message-format json` says would run.
    pub fn of_list(json: &[u8]) -> Result<Self, serde_json::Error> {
        let list: List = serde_json::from_slice(json)?;
        Ok(Self::of(list.would_run()))
    }

    /// Each pair with the number of distinct rows that it has tests for.
    pub fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.pairs.iter().map(|(pair, rows)| (pair.as_str(), rows.len()))
    }

    /// `Ok` if every row has exactly one test for `pair`.
    pub fn check(&self, pair: &str) -> Result<(), RowsError> {
        let rows = self.pairs.get(pair);
        let tests = |row: &'static str| rows.and_then(|rows| rows.get(row)).copied().unwrap_or(0);
        let missing: Vec<_> = ROWS.into_iter().filter(|row| tests(row) == 0).collect();
        if !missing.is_empty() {
            return Err(RowsError::Missing { pair: pair.to_owned(), missing });
        }
        match ROWS.into_iter().find(|row| tests(row) > 1) {
            Some(row) => Err(RowsError::Several { pair: pair.to_owned(), row, tests: tests(row) }),
            None => Ok(()),
        }
    }
}

/// The pair and the row that a test holds, by its path.
#[must_use]
pub fn row_of(test: &str) -> Option<(&str, &'static str)> {
    let mut segments = test.split("::").skip_while(|segment| *segment != "contract").skip(1);
    let (pair, name) = (segments.next()?, segments.next()?);
    let holds = |row: &&str| name.strip_prefix(*row).is_some_and(|words| words.starts_with('_'));
    ROWS.into_iter().find(holds).map(|row| (pair, row))
}

/// The part of the runner's list that is read.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    rust_suites: BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
struct Suite {
    testcases: BTreeMap<String, Testcase>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Testcase {
    filter_match: FilterMatch,
}

#[derive(Deserialize)]
struct FilterMatch {
    status: String,
}

impl List {
    fn would_run(&self) -> impl Iterator<Item = &str> {
        let tests = self.rust_suites.values().flat_map(|suite| &suite.testcases);
        // An ignored test is a mismatch for the runner, and so no test that holds a row.
        tests.filter(|(_, test)| test.filter_match.status == "matches").map(|(path, _)| path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(pair: &str) -> Vec<String> {
        ROWS.iter().map(|row| format!("contract::{pair}::{row}_in_a_few_words")).collect()
    }

    fn tally(tests: &[String]) -> Tally {
        Tally::of(tests.iter().map(String::as_str))
    }

    #[test]
    fn a_row_is_found_by_its_path() {
        assert_eq!(row_of("contract::embedded::h3b_successor_keeps_its_pin"), Some(("embedded", "h3b")));
        assert_eq!(row_of("it::contract::cloud::d3_lost_settles"), Some(("cloud", "d3_lost")));
        for none in [
            "contract::embedded::h9_x",
            "contract::embedded::h3",
            "contract::embedded::h33_x",
            "h1_x",
            "contract::h1_x",
        ] {
            assert_eq!(row_of(none), None, "{none}");
        }
    }

    #[test]
    fn every_row_once_is_whole() {
        let tally = tally(&whole("embedded"));
        assert_eq!(tally.check("embedded"), Ok(()));
        assert_eq!(tally.counts().collect::<Vec<_>>(), [("embedded", 37)]);
    }

    #[test]
    fn a_missing_row_and_a_row_held_twice_are_named() {
        let mut tests = whole("embedded");
        tests.retain(|test| !test.contains("::s2_"));
        let missing = RowsError::Missing { pair: "embedded".to_owned(), missing: vec!["s2"] };
        assert_eq!(tally(&tests).check("embedded"), Err(missing));

        tests.extend(["contract::embedded::s2_a".to_owned(), "contract::embedded::s2_b".to_owned()]);
        let several = RowsError::Several { pair: "embedded".to_owned(), row: "s2", tests: 2 };
        assert_eq!(tally(&tests).check("embedded"), Err(several));
    }

    #[test]
    fn rows_of_one_pair_do_not_count_for_another() {
        let Err(RowsError::Missing { missing, .. }) = tally(&whole("embedded")).check("cloud") else {
            panic!("no row of the cloud pair was given")
        };
        assert_eq!(missing, ROWS);
    }

    #[test]
    fn only_tests_that_would_run_count() {
        let json = br#"{"test-count": 3, "rust-suites": {"leasehold-tenure::it": {"package-name": "leasehold-tenure", "testcases": {
            "contract::embedded::h1_a": {"ignored": false, "filter-match": {"status": "matches"}},
            "contract::embedded::h2_a": {"ignored": true, "filter-match": {"status": "mismatch", "reason": "ignored"}},
            "state::h3_a": {"ignored": false, "filter-match": {"status": "matches"}}}}}}"#;
        let tally = Tally::of_list(json).unwrap();
        assert_eq!(tally, Tally::of(["contract::embedded::h1_a"]));
    }
}
