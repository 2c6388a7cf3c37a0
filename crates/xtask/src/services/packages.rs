//! What comes from npm: pinned in `integration/`, installed below the target directory.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use super::{error::ServiceError, place, programs};

/// The files that say what is installed, and how.
const PINNED: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// An installation.
#[derive(Debug)]
pub(crate) struct Packages {
    modules: PathBuf,
}

impl Packages {
    /// Installs what `integration` pins below `services`, unless that was done; Postgres only where it is needed, since it is
    /// large.
    pub(crate) fn install(
        integration: &Path,
        services: &Path,
        log: &Path,
        with_postgres: bool,
    ) -> Result<Self, ServiceError> {
        let directory = services.join("npm");
        let packages = Self { modules: directory.join("node_modules") };
        let lock = integration.join("package-lock.json");
        let wanted = fs::read_to_string(&lock).map_err(ServiceError::at(&lock))?;
        // Written last: what was interrupted is done again.
        let (plain, whole) = (directory.join("installed"), directory.join("installed-with-postgres"));
        let done = |marker: &Path| fs::read_to_string(marker).is_ok_and(|installed| installed == wanted);
        if done(&whole) || (!with_postgres && done(&plain)) {
            return Ok(packages);
        }

        println!("installing the servers that come from npm below the target directory");
        let npm = programs::find("npm").ok_or(ServiceError::NoNode { program: "npm" })?;
        fs::create_dir_all(&directory).map_err(ServiceError::at(&directory))?;
        for name in PINNED {
            let (from, to) = (integration.join(name), directory.join(name));
            fs::copy(&from, to).map_err(ServiceError::at(&from))?;
        }
        let output = File::create(log).map_err(ServiceError::at(log))?;
        let errors = output.try_clone().map_err(ServiceError::at(log))?;
        let mut command = Command::new(npm);
        // No package's own script runs: none is needed, and none was read.
        command.args(["ci", "--ignore-scripts", "--no-progress"]).current_dir(&directory);
        if !with_postgres {
            command.arg("--omit=optional");
        }
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        place::run(command, "npm ci", log)?;
        if with_postgres && let Some(package) = packages.postgres() {
            link(&package)?;
        }
        let marker = if with_postgres { whole } else { plain };
        fs::write(&marker, wanted).map_err(ServiceError::at(&marker))?;
        Ok(packages)
    }

    /// Azurite's blob service, for `node`.
    pub(crate) fn azurite(&self) -> PathBuf {
        self.modules.join("azurite/dist/src/blob/main.js")
    }

    /// The package with Postgres for this machine.
    pub(crate) fn postgres(&self) -> Option<PathBuf> {
        let found = programs::newest_first(&self.modules.join("@embedded-postgres"));
        found.into_iter().find(|package| package.join("native/bin/postgres").is_file())
    }
}

/// A link that a package cannot carry, by paths from the package's root.
#[derive(Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// Makes the links that the package lists, between files of one directory.
fn link(package: &Path) -> Result<(), ServiceError> {
    let list = package.join("native/pg-symlinks.json");
    let text = fs::read(&list).map_err(ServiceError::at(&list))?;
    let links: Vec<Link> =
        serde_json::from_slice(&text).map_err(|error| ServiceError::at(&list)(error.into()))?;
    for Link { source, target } in links {
        let target = package.join(target);
        if let Some(name) = source.file_name()
            && fs::symlink_metadata(&target).is_err()
        {
            symlink(name, &target).map_err(ServiceError::at(&target))?;
        }
    }
    Ok(())
}
