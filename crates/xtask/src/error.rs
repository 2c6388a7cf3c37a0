//! What can go wrong while the suites are started, run or judged.

use std::{io, path::PathBuf, process::ExitStatus};

use leasehold_services::ServiceError;

use crate::rows::RowsError;

/// A step that could not be done, or that found something.
#[derive(Debug, thiserror::Error)]
pub enum XtaskError {
    /// Cargo could not describe the workspace.
    #[error("failed to read the workspace's manifests")]
    Metadata(#[from] cargo_metadata::Error),
    /// A program could not be started.
    #[error("failed to start `{command}`")]
    Start {
        /// The command line.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program ran and failed; what it found is above, in its own words.
    #[error("`{command}` failed ({status})")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// The test runner is missing and could not be installed.
    #[error(
        "the test runner is missing: install it with `cargo install cargo-nextest --locked --version {version}`"
    )]
    NoRunner {
        /// The version that these suites were written for.
        version: &'static str,
        /// Why it could not be installed.
        source: Box<XtaskError>,
    },
    /// What comes from `PyPI` is missing and could not be installed.
    #[error(
        "{purpose} need Python 3.11 or later with its venv module (another one than `python3` by PYTHON), and from PyPI what \
         {pinned} lists: it could not be installed"
    )]
    NoPythonTools {
        /// What it is for.
        purpose: &'static str,
        /// The list.
        pinned: &'static str,
        /// Why.
        source: Box<XtaskError>,
    },
    /// Cargo built the binary and did not say where it is.
    #[error("cargo did not say where it put the binary `leasehold`")]
    NoBinary,
    /// The test runner's list of tests has another form than this program reads.
    #[error("failed to read the test runner's list of tests")]
    List(#[source] serde_json::Error),
    /// The lock file is none.
    #[error("failed to read the digests in Cargo.lock")]
    Lock(#[source] Box<toml::de::Error>),
    /// A crate that carries a library does not say which version of it.
    #[error("{path} does not say which version of its library it carries: look where it says so now")]
    NoVersion {
        /// Where it used to stand.
        path: PathBuf,
    },
    /// The tests do not hold the contract's rows one by one.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// A server that the suites need does not run.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A file or directory of the workspace could not be read.
    #[error("failed to read {path}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file below the target directory could not be written.
    #[error("failed to write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A source file is no Rust.
    #[error("failed to parse {path}:{}", source.span().start().line)]
    Parse {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: syn::Error,
    },
    /// There is no bench of this name.
    #[error("there is no bench `{name}`: there are {there_are}")]
    NoBench {
        /// What was asked for.
        name: String,
        /// The names that there are.
        there_are: String,
    },
    /// The page of the benches has no place for a table.
    #[error(
        "{path} has no `<!-- table {name} -->` and `<!-- end {name} -->` for the table of this bench: add them"
    )]
    NoMarks {
        /// The page.
        path: PathBuf,
        /// The bench.
        name: String,
    },
    /// Rules of the house are broken; each breach was printed.
    #[error("{breaches} breaches of the rules of the house")]
    Breaches {
        /// How many.
        breaches: usize,
    },
}
