//! Where the suites' own programs and logs are.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::ServiceError;

/// What cargo puts at the root of a target directory.
const TARGET_MARK: &str = "CACHEDIR.TAG";

/// What pins the servers that come from npm, and where these and the logs of all servers lie.
#[derive(Clone, Debug)]
pub struct Home {
    integration: PathBuf,
    directory: PathBuf,
}

impl Home {
    /// That of a workspace at `root` which is built in `target`.
    #[must_use]
    pub fn new(root: &Path, target: &Path) -> Self {
        Self { integration: root.join("integration"), directory: target.join("services") }
    }

    /// That of the workspace which this program, such as a test, was built in.
    pub fn of_this_program() -> Result<Self, ServiceError> {
        let program = env::current_exe().map_err(ServiceError::at("this program"))?;
        let target = program.ancestors().find(|directory| directory.join(TARGET_MARK).is_file());
        let target = target.ok_or_else(|| ServiceError::NoTarget { program: program.clone() })?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/"));
        Ok(Self::new(root, target))
    }

    /// The files that say what comes from npm.
    pub(crate) fn integration(&self) -> &Path {
        &self.integration
    }

    /// Where that is installed.
    pub(crate) fn packages(&self) -> PathBuf {
        self.directory.join("npm")
    }

    /// Where servers write what they have to say.
    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_finds_the_workspace_that_it_was_built_in() {
        let home = Home::of_this_program().unwrap();
        assert!(home.integration().join("package-lock.json").is_file(), "{home:?}");
        let target = home.directory.parent().unwrap();
        assert!(env::current_exe().unwrap().starts_with(target), "{home:?}");
    }
}
