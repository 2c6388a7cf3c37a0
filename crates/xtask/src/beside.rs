//! `cargo xtask services`: a command beside the servers that the suites need.

use std::process::Command;

use leasehold_services::Services;

use crate::{XtaskError, workspace::Workspace};

/// Runs `command` where it was called, with the servers' addresses in its environment.
pub(crate) fn run(workspace: &Workspace, command: &[String]) -> Result<(), XtaskError> {
    let services = Services::start(&workspace.home())?;
    let shown = command.join(" ");
    println!("$ {shown}");
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let status = Command::new(program)
        .args(arguments)
        .envs(services.variables().iter().map(|(name, value)| (name, value)))
        .status()
        .map_err(|source| XtaskError::Start { command: shown.clone(), source })?;
    if status.success() {
        return Ok(());
    }
    services.tell_logs();
    Err(XtaskError::Failed { command: shown, status })
}
