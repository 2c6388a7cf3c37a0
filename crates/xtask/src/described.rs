//! `cargo xtask described`: a replica held to its own `openapi.json` by schemathesis, which makes up requests from it.
//!
//! What it needs is pinned with its digests in `integration/described/requirements.txt` and installed below the target directory.

use crate::{
    XtaskError, chart,
    python::{Environment, Tools, run_to_its_end},
    workspace::Workspace,
};

const TOOLS: Tools = Tools {
    name: "described",
    purpose: "the check of the service against its description",
    pinned: "integration/described/requirements.txt",
};

/// Asks a replica of its own, by the binary that is named by the environment, else the workspace's.
pub(crate) fn run(workspace: &Workspace) -> Result<(), XtaskError> {
    let python = Environment::ready(workspace, TOOLS)?;
    let binary = chart::binary(workspace)?;
    let mut command = python.command(&["integration/described/run.py"]);
    command.arg(binary).arg(workspace.target().join("described-run")).current_dir(workspace.root());
    run_to_its_end(&mut command)
}
