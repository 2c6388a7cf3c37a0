//! What a ledger does, through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod append;
mod bounds;
mod compile;
mod escape;
mod execute;
mod files;
mod fixture;
mod fuzz;
mod history;
mod images;
mod model;
mod real_time;
mod run;
mod salvage;
