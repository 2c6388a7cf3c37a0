//! The lease crate from outside: the contract over SQLite, held leases, the keeper.

mod conformance;
mod held;
mod keeper;
mod sqlite;
mod stage;
