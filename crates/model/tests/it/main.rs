//! The searches of the suite.

mod configurations;
mod fleets;
mod mutations;
