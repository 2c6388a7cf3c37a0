//! Bytes between local files and objects, in bounded memory.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use super::blocking::Caller;
use crate::BlobError;

const CHUNK_LEN: usize = 256 * 1024;

/// Copies `from` to its end into `to`, as long as somebody waits for it, and answers how many bytes there were.
pub(super) fn copy(
    caller: &Caller<'_>,
    (from, on_read): (&mut impl Read, impl Fn(io::Error) -> BlobError),
    (to, on_write): (&mut impl Write, impl Fn(io::Error) -> BlobError),
) -> Result<u64, BlobError> {
    let mut chunk = vec![0; CHUNK_LEN];
    let mut copied = 0;
    loop {
        caller.still_waits()?;
        match from.read(&mut chunk) {
            Ok(0) => return Ok(copied),
            Ok(len) => {
                to.write_all(&chunk[..len]).map_err(&on_write)?;
                copied += len as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(on_read(error)),
        }
    }
}

/// A local file that is there only once it was said to be kept.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) file: File,
    path: PathBuf,
    is_kept: bool,
}

impl NewFile {
    /// Creates `path`, which must not exist.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { file, path: path.to_owned(), is_kept: false })
    }

    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "a half-written download stays behind");
        }
    }
}
