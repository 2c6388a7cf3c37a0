//! The lease crate from outside: the contract over SQLite and Postgres, held leases, the keeper.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod conformance;
mod full_disk;
mod held;
mod keeper;
mod postgres;
mod rows;
mod sqlite;
mod stage;
