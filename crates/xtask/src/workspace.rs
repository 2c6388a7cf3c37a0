//! Where the workspace lies, what its members are, and the files that people wrote in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::{Metadata, MetadataCommand};
use leasehold_services::Home;

use crate::XtaskError;

/// Where lies what was built, fetched or recorded, and not written by anybody.
const NOT_WRITTEN: [&str; 4] = [".git", ".leasehold", "node_modules", "target"];

/// The workspace around this program.
#[derive(Debug)]
pub struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// The workspace that the current directory lies in. Reads manifests only: needs no network and no lock file.
    pub fn find() -> Result<Self, XtaskError> {
        let metadata = MetadataCommand::new().no_deps().other_options(["--offline".to_owned()]).exec()?;
        Ok(Self { metadata })
    }

    /// What cargo says about it.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Its root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// Where cargo puts what it builds.
    #[must_use]
    pub fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// Where its suites' servers have their programs and logs.
    pub(crate) fn home(&self) -> Home {
        Home::new(self.root(), self.target())
    }

    /// Every file that somebody wrote, as paths from the root, in order. Symbolic links are not followed.
    pub fn files(&self) -> Result<Vec<PathBuf>, XtaskError> {
        let mut found = Vec::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            let shown = self.root().join(&directory);
            let unread = |source| XtaskError::Read { path: shown.clone(), source };
            for entry in fs::read_dir(&shown).map_err(unread)? {
                let entry = entry.map_err(unread)?;
                if NOT_WRITTEN.iter().any(|name| entry.file_name() == *name) {
                    continue;
                }
                let kind = entry.file_type().map_err(unread)?;
                let path = directory.join(entry.file_name());
                if kind.is_file() {
                    found.push(path);
                } else if kind.is_dir() {
                    directories.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The text of one of [`Workspace::files`]; `None` when it is no text.
    pub fn text(&self, file: &Path) -> Result<Option<String>, XtaskError> {
        let path = self.root().join(file);
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
            Err(source) => Err(XtaskError::Read { path, source }),
        }
    }
}
