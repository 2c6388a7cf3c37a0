//! The programs that do the work: cargo, and the test runner beside it.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{XtaskError, workspace::Workspace};

/// The runner's version that is installed where there is none (`.config/nextest.toml` says which ones will do).
const RUNNER_VERSION: &str = "0.9.143";

/// Cargo, run at the root of the workspace.
#[derive(Debug)]
pub(crate) struct Cargo<'w> {
    workspace: &'w Workspace,
    program: OsString,
    /// What whatever it runs is told besides.
    environment: Vec<(&'static str, String)>,
}

impl<'w> Cargo<'w> {
    /// The cargo that runs this program, else the one on the path.
    pub(crate) fn of(workspace: &'w Workspace) -> Self {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self { workspace, program, environment: Vec::new() }
    }

    /// The same, which tells whatever it runs these environment variables.
    pub(crate) fn telling(self, variables: &[(&'static str, String)]) -> Self {
        Self { environment: variables.to_vec(), ..self }
    }

    /// Runs it with these arguments; its output goes where ours goes.
    pub(crate) fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Result<(), XtaskError> {
        self.run_with(arguments, &[])
    }

    /// Runs it with these arguments and environment variables; its output goes where ours goes.
    pub(crate) fn run_with<S: AsRef<str>>(
        &self,
        arguments: &[S],
        variables: &[(&str, &str)],
    ) -> Result<(), XtaskError> {
        let (mut command, shown) = self.command(arguments);
        command.envs(variables.iter().copied());
        println!("$ {shown}");
        let status =
            command.status().map_err(|source| XtaskError::Start { command: shown.clone(), source })?;
        if status.success() { Ok(()) } else { Err(XtaskError::Failed { command: shown, status }) }
    }

    /// Runs it with these arguments and answers what it wrote to its standard output.
    pub(crate) fn read<S: AsRef<str>>(&self, arguments: &[S]) -> Result<Vec<u8>, XtaskError> {
        let (mut command, shown) = self.command(arguments);
        let Output { status, stdout, .. } = command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| XtaskError::Start { command: shown.clone(), source })?;
        if status.success() { Ok(stdout) } else { Err(XtaskError::Failed { command: shown, status }) }
    }

    /// Makes sure that `cargo nextest` can be run. Where it is missing it is installed, below the target directory and
    /// nowhere else.
    pub(crate) fn ensure_runner(&self) -> Result<(), XtaskError> {
        let (mut probe, _) = self.command(&["nextest", "--version"]);
        let found = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        println!("cargo-nextest is missing: installing {RUNNER_VERSION} below the target directory");
        let root = self.tools().display().to_string();
        self.run(&["install", "cargo-nextest", "--locked", "--version", RUNNER_VERSION, "--root", &root])
            .map_err(|why| XtaskError::NoRunner { version: RUNNER_VERSION, source: Box::new(why) })
    }

    fn tools(&self) -> PathBuf {
        self.workspace.target().join("tools")
    }

    fn command<S: AsRef<str>>(&self, arguments: &[S]) -> (Command, String) {
        let arguments = locked(arguments.iter().map(AsRef::as_ref).collect());
        let mut command = Command::new(&self.program);
        command
            .args(&arguments)
            .current_dir(self.workspace.root())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        let paths = env::var_os("PATH").unwrap_or_default();
        // What was installed for us comes last: a person's own runner is preferred.
        if let Ok(paths) = env::join_paths(env::split_paths(&paths).chain([self.tools().join("bin")])) {
            command.env("PATH", paths);
        }
        (command, format!("cargo {}", arguments.join(" ")))
    }
}

/// Another program with these arguments, at `root`, and how it is shown. One that is a file there is meant before one of the path.
pub(crate) fn program(root: &Path, program: &str, arguments: &[&str]) -> (Command, String) {
    let path = root.join(program);
    let mut command = if path.is_file() { Command::new(path) } else { Command::new(program) };
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    (command, format!("{program} {}", arguments.join(" ")))
}

/// Runs it; its output goes where ours goes.
pub(crate) fn run(root: &Path, name: &str, arguments: &[&str]) -> Result<(), XtaskError> {
    let (mut command, shown) = program(root, name, arguments);
    println!("$ {shown}");
    let status = command.status().map_err(|source| XtaskError::Start { command: shown.clone(), source })?;
    if status.success() { Ok(()) } else { Err(XtaskError::Failed { command: shown, status }) }
}

/// The same arguments, by the lock file where cargo resolves anything: what is tested is what was locked.
fn locked(mut arguments: Vec<&str>) -> Vec<&str> {
    let at = match arguments.as_slice() {
        ["bench" | "build" | "clippy" | "doc" | "run" | "test" | "tree", ..] => 1,
        ["nextest", "list" | "run", ..] => 2,
        _ => return arguments,
    };
    if !arguments.contains(&"--locked") {
        arguments.insert(at, "--locked");
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_builds_builds_what_was_locked() {
        let shown = |line: &str| locked(line.split(' ').collect()).join(" ");
        assert_eq!(shown("clippy --workspace -- -D warnings"), "clippy --locked --workspace -- -D warnings");
        assert_eq!(shown("nextest run --workspace"), "nextest run --locked --workspace");
        assert_eq!(shown("tree --locked"), "tree --locked");
        for line in ["fmt --all --check", "nextest --version", "install cargo-nextest --locked"] {
            assert_eq!(shown(line), line);
        }
    }
}
