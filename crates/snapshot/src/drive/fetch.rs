//! The parts of a snapshot, downloaded, verified and decoded into a database file.

use std::{
    fs::File,
    io::{Read, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use leasehold_blob::BlobKey;
use leasehold_types::{AttemptId, Position, Timestamp};
use sha2::{Digest as _, Sha256};

use super::{context::SnapshotContext, scratch::Scratch};
use crate::{
    SnapshotError, SnapshotRef,
    format::{Content, Digest, Encoding, Manifest, Part},
};

const CHUNK: usize = 128 * 1024;

/// The largest window that a zstd stream may ask for: 128 MiB of memory.
const WINDOW_LOG_MAX: u32 = 27;

/// A snapshot that was brought here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The snapshot.
    pub snapshot: SnapshotRef,
    /// The last event in it.
    pub position: Position,
    /// When it was published, by its publisher's calendar.
    pub at: Timestamp,
    /// How many bytes were fetched.
    pub bytes_fetched: u64,
    /// The length of the database file in bytes.
    pub database_bytes: u64,
}

/// What a fetch came to.
pub(crate) enum Fetched {
    Here(Restored),
    Missing(BlobKey),
}

/// Brings the snapshot of `manifest` to `to`, replacing what is there. Nothing appears at `to` before every
/// part's length and digest were verified and the database has the size that the manifest says.
pub(crate) async fn fetch(
    ctx: &SnapshotContext,
    manifest: &Manifest,
    object: &BlobKey,
    to: &Path,
) -> Result<Fetched, SnapshotError> {
    let part =
        manifest.parts.first().ok_or_else(|| SnapshotError::damaged(object, "it has no parts"))?.clone();
    let bytes_fetched = part.bytes;
    let (source, named) = match &part.content {
        Content::Inline(bytes) => (Source::Memory(bytes.clone()), object.clone()),
        Content::Object(key) => match download(ctx, key, to).await? {
            Some(file) => (Source::File(file), key.clone()),
            None => return Ok(Fetched::Missing(key.clone())),
        },
    };
    let database_bytes = manifest.database_bytes();
    let decoding = Decoding {
        source,
        part,
        named,
        page_size: manifest.page_size,
        database_bytes,
        to: to.to_path_buf(),
        attempt: ctx.entropy.attempt_id(),
    };
    tokio::task::spawn_blocking(move || decoding.run())
        .await
        .map_err(|error| SnapshotError::local("decode into", to)(std::io::Error::other(error)))??;
    Ok(Fetched::Here(Restored {
        snapshot: manifest.snapshot(),
        position: manifest.position,
        at: manifest.at,
        bytes_fetched,
        database_bytes,
    }))
}

async fn download(ctx: &SnapshotContext, key: &BlobKey, to: &Path) -> Result<Option<Scratch>, SnapshotError> {
    let action = format!("get {key}");
    let (limit, tries) = (ctx.options.transfer_limit, ctx.options.retry.tries);
    let call = || async {
        // A name of its own for each try: one that timed out may still be writing.
        let scratch = Scratch::beside(to, ctx.entropy.attempt_id());
        Ok(ctx.blobs.download(key, scratch.path()).await?.map(|_| scratch))
    };
    Ok(ctx.blob(&action, limit, tries, call).await?)
}

enum Source {
    Memory(Bytes),
    File(Scratch),
}

impl Source {
    fn reader(&self) -> Result<Box<dyn Read + '_>, SnapshotError> {
        Ok(match self {
            Self::Memory(bytes) => Box::new(bytes.as_ref()),
            Self::File(file) => {
                Box::new(File::open(file.path()).map_err(SnapshotError::local("read", file.path()))?)
            }
        })
    }
}

/// Everything that the blocking half needs.
struct Decoding {
    source: Source,
    part: Part,
    /// The object to name when something is wrong.
    named: BlobKey,
    page_size: u32,
    database_bytes: u64,
    to: PathBuf,
    attempt: AttemptId,
}

impl Decoding {
    fn run(self) -> Result<(), SnapshotError> {
        self.verify()?;
        let plain = Scratch::beside(&self.to, self.attempt);
        self.decode(&plain)?;
        plain.become_file(&self.to)
    }

    fn damaged(&self, detail: impl Into<String>) -> SnapshotError {
        SnapshotError::damaged(&self.named, detail)
    }

    /// No byte is decoded before all of them are known to be what was published.
    fn verify(&self) -> Result<(), SnapshotError> {
        let mut reader = self.source.reader()?;
        let (mut hasher, mut total, mut chunk) = (Sha256::new(), 0_u64, vec![0; CHUNK]);
        loop {
            let count = reader.read(&mut chunk).map_err(SnapshotError::local("read", &self.to))?;
            if count == 0 {
                break;
            }
            total += count as u64;
            hasher.update(&chunk[..count]);
        }
        if total != self.part.bytes {
            return Err(self.damaged(format!("it has {total} bytes, its manifest says {}", self.part.bytes)));
        }
        let found = Digest::finish(hasher);
        if found != self.part.sha256 {
            return Err(
                self.damaged(format!("its SHA-256 is {found}, its manifest says {}", self.part.sha256))
            );
        }
        Ok(())
    }

    fn decode(&self, plain: &Scratch) -> Result<(), SnapshotError> {
        let reader = self.source.reader()?;
        let mut reader: Box<dyn Read + '_> = match self.part.encoding {
            Encoding::Plain => reader,
            Encoding::Zstd => {
                let zstd = |error: std::io::Error| self.damaged(format!("it is no zstd stream: {error}"));
                let mut decoder = zstd::Decoder::new(reader).map_err(zstd)?.single_frame();
                decoder.window_log_max(WINDOW_LOG_MAX).map_err(zstd)?;
                Box::new(decoder)
            }
        };
        let write = || SnapshotError::local("write", plain.path());
        let mut file = File::options().write(true).create_new(true).open(plain.path()).map_err(write())?;
        let (mut total, mut chunk) = (0_u64, vec![0; CHUNK]);
        loop {
            let count = reader
                .read(&mut chunk)
                .map_err(|error| self.damaged(format!("it cannot be decoded: {error}")))?;
            if count == 0 {
                break;
            }
            if total == 0 {
                self.check_header(&chunk[..count])?;
            }
            total += count as u64;
            // Stopped at the bound, so that a small object cannot fill the disk.
            if total > self.database_bytes {
                return Err(self.damaged(format!("it decodes to more than {} bytes", self.database_bytes)));
            }
            file.write_all(&chunk[..count]).map_err(write())?;
        }
        if total != self.database_bytes {
            let says = self.database_bytes;
            return Err(self.damaged(format!("it decodes to {total} bytes, its manifest says {says}")));
        }
        Ok(())
    }

    /// The first bytes of a database file (SQLite, "Database File Format", 1.3): the magic string and the page size.
    fn check_header(&self, start: &[u8]) -> Result<(), SnapshotError> {
        let size = match start.get(16..18) {
            Some(&[0, 1]) => 65_536,
            Some(&[high, low]) => u32::from(u16::from_be_bytes([high, low])),
            _ => 0,
        };
        if !start.starts_with(b"SQLite format 3\0") || size != self.page_size {
            return Err(self.damaged(format!("it is no SQLite database of {}-byte pages", self.page_size)));
        }
        Ok(())
    }
}
