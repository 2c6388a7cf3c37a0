//! The embedded backend: one SQLite file that the replicas of one machine share.

mod connection;
mod inspect;
mod leases;
mod replicas;
mod store;
mod tokens;
mod turn;

pub use inspect::SqliteFile;
pub use store::SqliteLeaseStore;
