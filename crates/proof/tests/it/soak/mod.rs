//! Fleets that are used and disturbed by a seed, and what must stay as it was whatever goes on.
//!
//! These are the suite's bounds; `cargo xtask soak` has none.

mod churn;
mod idle;
mod mutant;
mod real_time;
mod replay;
mod rounds;
