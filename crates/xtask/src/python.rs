//! Pythons of our own: what comes as a package of `PyPI` is pinned with its digests in the repository and installed below the
//! target directory, each set beside the others and nothing else with it.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{XtaskError, workspace::Workspace};

/// What is pinned together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tools {
    /// Its directory below the target directory.
    pub(crate) name: &'static str,
    /// For people: what is done with it.
    pub(crate) purpose: &'static str,
    /// The list with the digests, from the root of the workspace.
    pub(crate) pinned: &'static str,
}

/// A Python with what is pinned, and nothing else.
#[derive(Debug)]
pub(crate) struct Environment {
    directory: PathBuf,
}

impl Environment {
    /// What was installed, else installs it.
    pub(crate) fn ready(workspace: &Workspace, tools: Tools) -> Result<Self, XtaskError> {
        let directory = workspace.target().join(tools.name);
        let pinned = workspace.root().join(tools.pinned);
        let wanted = fs::read_to_string(&pinned)
            .map_err(|source| XtaskError::Read { path: pinned.clone(), source })?;
        let installed = directory.join("installed.txt");
        let environment = Self { directory };
        if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
            return Ok(environment);
        }
        println!("installing what {} needs below the target directory", tools.purpose);
        environment.install(&pinned).map_err(|why| XtaskError::NoPythonTools {
            purpose: tools.purpose,
            pinned: tools.pinned,
            source: Box::new(why),
        })?;
        // Written last: what was interrupted is done again.
        fs::write(&installed, wanted).map_err(|source| XtaskError::Write { path: installed, source })?;
        Ok(environment)
    }

    fn install(&self, pinned: &Path) -> Result<(), XtaskError> {
        let program = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let mut make = Command::new(program);
        make.args(["-m", "venv", "--clear"]).arg(&self.directory);
        run_to_its_end(&mut make)?;
        let install =
            ["-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:"];
        let mut install = self.command(&install);
        install.args(["--disable-pip-version-check", "--requirement"]).arg(pinned);
        run_to_its_end(&mut install)
    }

    /// Its Python with these arguments, which writes nothing beside the sources.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program("python");
        command.args(arguments);
        command
    }

    /// A program that came with what is pinned.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.directory.join("bin").join(name));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// Runs a program with its output where ours goes.
pub(crate) fn run_to_its_end(command: &mut Command) -> Result<(), XtaskError> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|source| XtaskError::Start { command: shown.clone(), source })?;
    if status.success() { Ok(()) } else { Err(XtaskError::Failed { command: shown, status }) }
}

/// A command line as a person would write it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let shown = words.map(OsString::from).collect::<Vec<_>>().join(" ".as_ref());
    shown.to_string_lossy().into_owned()
}
