//! A container engine with the images that `integration/compose.yaml` names, for the suites.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::{
    XtaskError,
    tool::{program, run},
    workspace::Workspace,
};

const DOCKERFILE: &str = "integration/Dockerfile";
/// What the compose file calls the product's image.
const IMAGE: &str = "leasehold:compose";
/// What the suites call the image of the build before this one.
const PREVIOUS_IMAGE: &str = "leasehold:previous";
/// The image that compiles, of which the suites have no need where the binary is there.
const RUST: &str = "rust:";
/// What the binary that cargo has built runs on: the Debian of the image.
const DEBIAN: &str = "VERSION_ID=\"12\"";

/// What was found.
#[derive(Debug)]
pub(crate) enum Found {
    Engine(Containers),
    Nothing { why: String },
}

/// An engine with all images. One that this started ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Containers {
    root: PathBuf,
    compose: &'static str,
    previous: Option<&'static str>,
}

impl Drop for Containers {
    fn drop(&mut self) {
        // It ends what it has started, and nothing else.
        let _ = succeeds(&self.root, "integration/engine", &["stop"]);
    }
}

impl Containers {
    /// Finds an engine or starts one, and gives it the images. Where there is no engine and none can be started, says why.
    /// The binary of an earlier build becomes an image of its own.
    pub(crate) fn find(workspace: &Workspace, previous: Option<&Path>) -> Result<Found, XtaskError> {
        let root = workspace.root();
        if let Err(why) = output(root, "integration/engine", &["start"]) {
            return Ok(Found::Nothing { why });
        }
        let compose = if succeeds(root, "docker", &["compose", "version"]) {
            "docker compose"
        } else if succeeds(root, "docker-compose", &["version"]) {
            "docker-compose"
        } else {
            return Ok(Found::Nothing {
                why: "neither `docker compose` nor `docker-compose` is there".to_owned(),
            });
        };
        let mut containers = Self { root: root.to_owned(), compose, previous: None };
        let names = output(root, "integration/offline-images", &["--list"]).unwrap_or_default();
        let is_needed = |name: &&str| !(takes_the_binary() && name.starts_with(RUST));
        let is_missing = |name: &&str| !succeeds(root, "docker", &["image", "inspect", name]);
        let missing: Vec<&str> = names.lines().filter(is_needed).filter(is_missing).collect();
        if missing.iter().any(|name| !succeeds(root, "docker", &["pull", "--quiet", name])) {
            println!("no image registry is reached: integration/offline-images makes {}", missing.join(" "));
            if let Err(why) = output(root, "integration/offline-images", &missing) {
                return Ok(Found::Nothing { why });
            }
        }
        if takes_the_binary() {
            containers.image(workspace, IMAGE, &workspace.target().join("debug").join("leasehold"))?;
            if let Some(binary) = previous {
                containers.image(workspace, PREVIOUS_IMAGE, binary)?;
                containers.previous = Some(PREVIOUS_IMAGE);
            }
        } else {
            let build = ["build", "--file", DOCKERFILE, "--build-arg", "PROFILE=dev", "--tag", IMAGE, "."];
            run(&containers.root, "docker", &build)?;
        }
        Ok(Found::Engine(containers))
    }

    /// How compose is called here.
    pub(crate) fn compose(&self) -> &'static str {
        self.compose
    }

    /// The image of the build before this one, where there is one.
    pub(crate) fn previous(&self) -> Option<&'static str> {
        self.previous
    }

    /// An image of a binary that was built already, in the last stage of the Dockerfile.
    fn image(&self, workspace: &Workspace, tag: &str, binary: &Path) -> Result<(), XtaskError> {
        let directory = workspace.target().join("compose").join("image");
        fs::create_dir_all(&directory)
            .map_err(|source| XtaskError::Write { path: directory.clone(), source })?;
        fs::copy(binary, directory.join("leasehold"))
            .map_err(|source| XtaskError::Read { path: binary.to_owned(), source })?;
        let path = self.root.join(DOCKERFILE);
        let text = fs::read_to_string(&path).map_err(|source| XtaskError::Read { path, source })?;
        let path = directory.join("Dockerfile");
        fs::write(&path, last_stage(&text)).map_err(|source| XtaskError::Write { path, source })?;
        run(&self.root, "docker", &["build", "--tag", tag, &directory.display().to_string()])
    }
}

/// Whether what cargo builds on this machine runs in the image.
fn takes_the_binary() -> bool {
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    system.contains("ID=debian") && system.contains(DEBIAN)
}

/// The Dockerfile's last stage over one that has the binary.
fn last_stage(dockerfile: &str) -> String {
    let (_, last) = dockerfile.rsplit_once("\nFROM ").unwrap_or_default();
    format!(
        "FROM debian:bookworm-slim AS build\nCOPY leasehold /image/usr/local/bin/leasehold\nRUN mkdir /data\n\nFROM {last}"
    )
}

fn succeeds(root: &Path, name: &str, arguments: &[&str]) -> bool {
    let (mut command, _) = program(root, name, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What it writes, or what it says of why it cannot.
fn output(root: &Path, name: &str, arguments: &[&str]) -> Result<String, String> {
    let (mut command, shown) = program(root, name, arguments);
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.trim().lines().next_back().unwrap_or(&shown).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stage_takes_what_the_one_before_it_has() {
        let workspace = Workspace::find().unwrap();
        let text = fs::read_to_string(workspace.root().join(DOCKERFILE)).unwrap();
        let last = last_stage(&text);
        assert_eq!(last.matches("\nFROM ").count(), 1, "{last}");
        // Whatever it copies is made above.
        let copied: Vec<&str> = last.lines().filter(|line| line.contains("--from=build")).collect();
        assert!(
            copied.iter().all(|line| line.contains(" /image ") || line.contains(" /data ")),
            "{copied:?}"
        );
        assert!(last.contains("ENTRYPOINT"));
    }
}
