//! An image, compressed and digested in one pass and in bounded memory.

use std::{
    fs::File,
    io::{Read as _, Write},
    path::Path,
};

use sha2::{Digest as _, Sha256};

use super::scratch::Scratch;
use crate::{SnapshotError, format::Digest};

const CHUNK: usize = 128 * 1024;

/// An encoded image in a file of its own.
#[derive(Debug)]
pub(crate) struct EncodedFile {
    pub(crate) file: Scratch,
    pub(crate) bytes: u64,
    pub(crate) sha256: Digest,
}

/// What is written is counted and digested on its way.
struct Digesting {
    file: File,
    bytes: u64,
    hasher: Sha256,
}

impl Write for Digesting {
    fn write(&mut self, chunk: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(chunk)?;
        self.bytes += written as u64;
        self.hasher.update(&chunk[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Encodes `image`, which has `len` bytes, into `to`. Blocks.
pub(crate) fn encode(image: &Path, len: u64, to: Scratch, level: i32) -> Result<EncodedFile, SnapshotError> {
    let read = || SnapshotError::local("read", image);
    let write = || SnapshotError::local("write", to.path());
    let mut source = File::open(image).map_err(read())?;
    let file = File::options().write(true).create_new(true).open(to.path()).map_err(write())?;
    let sink = Digesting { file, bytes: 0, hasher: Sha256::new() };
    let mut encoder = zstd::Encoder::new(sink, level).map_err(write())?;
    let mut chunk = vec![0; CHUNK];
    let mut total: u64 = 0;
    loop {
        let count = source.read(&mut chunk).map_err(read())?;
        if count == 0 {
            break;
        }
        total += count as u64;
        encoder.write_all(&chunk[..count]).map_err(write())?;
    }
    if total != len {
        let found = format!("the image has {total} bytes, its pages are {len}");
        return Err(read()(std::io::Error::new(std::io::ErrorKind::InvalidData, found)));
    }
    let sink = encoder.finish().map_err(write())?;
    let (bytes, sha256) = (sink.bytes, Digest::finish(sink.hasher));
    Ok(EncodedFile { file: to, bytes, sha256 })
}
