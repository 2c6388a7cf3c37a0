//! The snapshot crate as its callers and its objects' readers see it.

#![expect(clippy::unwrap_used, reason = "an unexpected error is how a test fails")]

mod drivers;
mod formats;
mod fuzz;
mod open_plan;
mod publish_plan;
mod resume_plan;
mod simulation;
mod sweep_plan;
mod world;
