//! The Postgres backend on a real server, directly and through a transaction-pooling `PgBouncer`.

mod answers;
mod conformance;
mod faults;
mod inspect;
mod killed;
mod migrations;
mod real_time;
mod renewals;
mod roles;
pub(crate) mod server;
mod tls;
