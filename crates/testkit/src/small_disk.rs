//! A disk that a test can fill.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

/// A small file system in memory, unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    at: PathBuf,
    _dir: TempDir,
}

impl SmallDisk {
    /// Mounts one of `bytes` bytes; the error is the system's reason where mounting is not permitted.
    pub fn mount(bytes: u64) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let at = dir.path().to_owned();
        let size = format!("size={bytes}");
        succeed(
            &Command::new("mount").args(["-t", "tmpfs", "-o", &size, "leasehold-test"]).arg(&at).output()?,
        )?;
        Ok(Self { at, _dir: dir })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Gives it room for `bytes` bytes, keeping what is on it.
    pub fn grow(&self, bytes: u64) -> io::Result<()> {
        let options = format!("remount,size={bytes}");
        succeed(&Command::new("mount").args(["-o", &options]).arg(&self.at).output()?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a file that is still open keeps what it needs and nothing else.
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}

fn succeed(output: &Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
