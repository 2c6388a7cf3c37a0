//! The build before this one, for the suite in which both are in one fleet.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::{
    XtaskError,
    tool::{self, Cargo, run},
    workspace::Workspace,
};

/// What tells the suites where it is.
pub(crate) const VARIABLE: &str = "LEASEHOLD_FLEET_PREVIOUS";
/// Where nothing was released yet.
const PARENT: &str = "HEAD^";

/// The binary that the environment names, else one that is built of `revision`; where none is named, of the newest release before this commit, else of
/// the commit before it. Says so and answers `None` where this clone has no such commit.
///
/// It is built into the same target directory, whose binary is this build's again once that is built: so this comes first.
pub(crate) fn build(workspace: &Workspace, revision: Option<&str>) -> Result<Option<PathBuf>, XtaskError> {
    if let Some(binary) = env::var_os(VARIABLE) {
        return Ok(Some(binary.into()));
    }
    let root = workspace.root();
    let revision = match revision {
        Some(revision) => revision.to_owned(),
        None => git(root, &["describe", "--tags", "--abbrev=0", "--match=v*", PARENT])
            .unwrap_or_else(|| PARENT.to_owned()),
    };
    let Some(commit) = git(root, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
    else {
        println!("NAMED EXCEPTION: the previous build: this clone has no commit {revision}");
        return Ok(None);
    };
    let home = workspace.target().join("previous");
    let binary = home.join(&commit).join("leasehold");
    if binary.is_file() {
        return Ok(Some(binary));
    }
    println!("building the previous build, {revision} ({commit})");
    let source = home.join("source");
    // What an earlier one has left.
    drop(fs::remove_dir_all(&home));
    let made = |path: &Path| {
        fs::create_dir_all(path).map_err(|source| XtaskError::Write { path: path.to_owned(), source })
    };
    made(&source)?;
    made(&home.join(&commit))?;
    let archive = home.join("source.tar").display().to_string();
    run(root, "git", &["archive", "--format=tar", "--output", &archive, &commit])?;
    run(root, "tar", &["--extract", "--file", &archive, "--directory", &source.display().to_string()])?;
    let (manifest, target) = (source.join("Cargo.toml"), workspace.target());
    // Of the whole workspace and beside a test, so that its dependencies have the features that they have for the tests of this one, and are built
    // once.
    Cargo::of(workspace).run(&[
        "build",
        "--workspace",
        "--bin",
        "leasehold",
        "--test",
        "suites",
        "--manifest-path",
        &manifest.display().to_string(),
        "--target-dir",
        &target.display().to_string(),
    ])?;
    let built = target.join("debug").join("leasehold");
    fs::copy(&built, &binary).map_err(|source| XtaskError::Read { path: built, source })?;
    Ok(Some(binary))
}

/// What git answers, if it does.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let (mut command, _) = tool::program(root, "git", arguments);
    command.stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
