//! `cargo xtask model`: the exhaustive check, as far as wanted.

use crate::{XtaskError, tool::Cargo, workspace::Workspace};

/// The crate whose program explores.
const PACKAGE: &str = "leasehold-model";

/// Builds the explorer for speed and runs it with `options`.
pub(crate) fn run(workspace: &Workspace, options: &[String]) -> Result<(), XtaskError> {
    let own = ["run", "--release", "--package", PACKAGE, "--"].map(str::to_owned);
    Cargo::of(workspace).run(&own.into_iter().chain(options.iter().cloned()).collect::<Vec<_>>())
}
