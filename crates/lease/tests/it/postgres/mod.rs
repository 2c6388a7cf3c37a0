//! The Postgres backend on a real server, directly and through a transaction-pooling PgBouncer.

mod conformance;
mod server;
