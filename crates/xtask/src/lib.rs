//! What `cargo xtask` does: it starts what the suites need, runs them and says what ran; and it holds the rules of the
//! house that no compiler holds.
//!
//! The rules are plain functions over what they judge, so that `cargo xtask ci`, the tests of this crate and the tests of
//! the rules themselves ask the same code: [`layers`] over the workspace's manifests, [`house`] over its sources,
//! [`unsafety`] over its sources and manifests, [`documents`] over its Markdown, [`threats`] over SECURITY.md, [`rows`] over the names of its tests.
//!
//! This crate depends on no other crate of the workspace but `leasehold-services`, which starts servers and depends on none,
//! so that it builds when they do not.

mod bench;
mod beside;
mod busy;
mod chart;
mod ci;
mod cli;
mod containers;
mod contract;
mod described;
mod error;
mod fleet;
mod fuzz;
mod model;
mod previous;
mod python;
mod sbom;
mod soak;
mod suites;
mod supply;
mod tool;

pub mod documents;
pub mod house;
pub mod layers;
pub mod rows;
pub mod threats;
pub mod unsafety;
pub mod workspace;

pub use cli::{Cli, run};
pub use error::XtaskError;
