//! One suite per store contract, each behaviour a function, run by every backend.

pub mod blob;
pub mod lease;
mod lease_model;
pub mod tokens;
