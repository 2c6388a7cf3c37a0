//! The Postgres backend: a schema of our own in a database that may be shared, behind a transaction-pooling PgBouncer or not.

mod connections;
mod conninfo;
mod failure;
mod found;
mod inspect;
mod leases;
mod migrations;
mod options;
mod renewal;
mod replicas;
mod rows;
mod statements;
mod store;
mod tls;
mod tokens;

pub use found::{
    PostgresCommits, PostgresPooling, PostgresRoundTrip, PostgresSchema, PostgresServer, PostgresTls,
};
pub use inspect::PostgresInspector;
pub use migrations::Migration;
pub use options::{PostgresOptions, TlsMode};
pub use store::PostgresLeaseStore;
