//! The servers that the suites need, started for one run and stopped with it.
//!
//! An address given in the environment wins. Else Postgres is the system's, or npm's where the system has none; Azurite
//! is npm's; `PgBouncer` is the system's, installed by `apt-get` where there is none and that is allowed. What comes from
//! npm is pinned in `integration/package.json` and its lock file and installed below the target directory. Servers listen
//! on loopback, on ports that were free, and keep their data in a temporary directory.

mod account;
mod azurite;
mod error;
mod packages;
mod pgbouncer;
mod place;
mod postgres;
mod programs;
mod server;
mod set;

pub use error::ServiceError;
pub(crate) use set::Services;
