//! The fleet suites: what the people who run a fleet do to it, and what its clients see meanwhile.
//!
//! One harness with two launchers ([`harness`]): plain processes on loopback, and the containers of `integration/compose.yaml`. Each suite
//! is a test in a module of its own; `cargo xtask test --fleet` and `cargo xtask test --compose` run them, one at a time. Time is real
//! here, and so are Postgres and Azurite. What a launcher cannot do is said by name in the output: no suite passes in silence.

#![expect(clippy::unwrap_used, reason = "what a suite needs and does not get ends it")]

mod disconnecting;
mod frozen;
mod harness;
mod killed;
mod mixed;
mod partitioned;
mod rolling;
mod scaling;
mod stuck;
