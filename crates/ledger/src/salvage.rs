//! What an abandoned, lost or crashed tenure left, kept for an operator.
//!
//! A crash never recovers from it (contract L2). It is linked and not copied, so keeping it costs nothing but the room.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::PoisonError,
    time::{Duration, UNIX_EPOCH},
};

use leasehold_types::{Epoch, Timestamp};
use rusqlite::OpenFlags;

use crate::{
    FileFacts, Ledger, LedgerError, connection,
    files::{beside, verify_file},
    image::{back_up, create_new, discard},
    ledger::ledger_path,
    live, schema,
    session::from_sqlite,
};

/// How many salvages a tenant keeps; the oldest goes when a new one comes.
pub const SALVAGES_MAX: usize = 8;

/// How often a taken name is numbered.
const NAMES_MAX: usize = 100;

/// How long a live ledger's writer is waited for, in real time, when it must be copied.
const WRITER_PATIENCE: Duration = Duration::from_secs(1);

/// One kept ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvage {
    /// Its name, unique for the tenant.
    pub name: String,
    /// Its ledger file; a log may lie beside it, so read it by [`Salvage::export`].
    pub path: PathBuf,
    /// Bytes of the file and its log.
    pub bytes: u64,
    /// When it was kept.
    pub at: Timestamp,
    /// The epoch of its tenure, where the name says it (`e00000007...`).
    pub epoch: Option<Epoch>,
}

impl Salvage {
    /// Writes it as one plain file to `to`, which must not exist, and says what it is.
    pub fn export(&self, to: &Path) -> Result<FileFacts, LedgerError> {
        let from = connection::open(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The first read takes up the log.
        schema::is_blank(&from).map_err(|error| from_sqlite(error, &self.path))?;
        create_new(to)?;
        back_up(&from, &self.path, to).and_then(|()| verify_file(to)).inspect_err(|_| discard(to))
    }
}

/// Keeps what lies at a tenant's ledger path as `<tenant root>/salvage/<label>/`. `None` when there is nothing, or
/// when a live owner has it: then no link may be made, so that its file is gone from the disk once another is put on
/// the path (contract P3). The file stays on its path either way.
pub fn salvage(tenant_root: &Path, label: &str) -> Result<Option<PathBuf>, LedgerError> {
    let path = ledger_path(tenant_root);
    check_label(label)?;
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() == 0 => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LedgerError::io("look at", &path, error)),
    }
    if live::is_alive(&path)? {
        return Ok(None);
    }
    let entry = new_entry(tenant_root, label)?;
    keep_files(&path, &entry).inspect_err(|_| discard_entry(&entry))?;
    drop_oldest(tenant_root)?;
    Ok(Some(entry))
}

/// A tenant's salvages, the newest first.
pub fn salvages(tenant_root: &Path) -> Result<Vec<Salvage>, LedgerError> {
    let dir = tenant_root.join("salvage");
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LedgerError::io("list", dir, error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| LedgerError::io("list", &dir, error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = ledger_path(&entry.path());
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let log = fs::metadata(beside(&path, "-wal")).map_or(0, |metadata| metadata.len());
        let at = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let millis = at
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        found.push(Salvage {
            epoch: epoch_of(&name),
            name,
            path,
            bytes: metadata.len() + log,
            at: Timestamp::from_millis(millis),
        });
    }
    found.sort_by(|a, b| (b.at, &b.name).cmp(&(a.at, &a.name)));
    Ok(found)
}

impl Ledger {
    /// Keeps this ledger as `<tenant root>/salvage/<label>/`, at the end of its tenure: linked when its path still
    /// leads to its own file, copied through its own connection when another tenure's file is there by now.
    pub fn salvage(&self, tenant_root: &Path, label: &str) -> Result<PathBuf, LedgerError> {
        check_label(label)?;
        // No page moves from the log into the file between the two links.
        let maintenance = self.maintenance.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = new_entry(tenant_root, label)?;
        let kept = if self.live.is_in_place() {
            keep_files(self.path(), &entry)
        } else {
            self.copy_out(&ledger_path(&entry))
        };
        drop(maintenance);
        kept.inspect_err(|_| discard_entry(&entry))?;
        drop_oldest(tenant_root)?;
        Ok(entry)
    }

    fn copy_out(&self, to: &Path) -> Result<(), LedgerError> {
        let Some(writer) = self.writer.acquire_for_maintenance(WRITER_PATIENCE)? else {
            return Err(LedgerError::Busy { waited: WRITER_PATIENCE });
        };
        create_new(to)?;
        let _ours = writer.guarded.control.ours();
        back_up(&writer.guarded.connection, self.path(), to)
    }
}

fn keep_files(path: &Path, entry: &Path) -> Result<(), LedgerError> {
    let kept = ledger_path(entry);
    keep_file(path, &kept)?;
    let log = beside(path, "-wal");
    if log.exists() { keep_file(&log, &beside(&kept, "-wal")) } else { Ok(()) }
}

fn keep_file(path: &Path, to: &Path) -> Result<(), LedgerError> {
    fs::hard_link(path, to).map_err(|error| LedgerError::io("link", path, error))
}

fn check_label(label: &str) -> Result<(), LedgerError> {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let good = (1..=100).contains(&label.len()) && label.bytes().all(plain);
    let rule = "must have 1 to 100 of the letters a-z, 0-9, - and _";
    good.then_some(()).ok_or(LedgerError::InvalidArgument { what: "the salvage's label", rule })
}

fn new_entry(tenant_root: &Path, label: &str) -> Result<PathBuf, LedgerError> {
    let dir = tenant_root.join("salvage");
    fs::create_dir_all(&dir).map_err(|error| LedgerError::io("create", &dir, error))?;
    for number in 1..=NAMES_MAX {
        let entry = if number == 1 { dir.join(label) } else { dir.join(format!("{label}-{number}")) };
        match fs::create_dir(&entry) {
            Ok(()) => return Ok(entry),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(LedgerError::io("create", entry, error)),
        }
    }
    Err(LedgerError::InvalidArgument { what: "the salvage's label", rule: "is taken a hundred times" })
}

fn drop_oldest(tenant_root: &Path) -> Result<(), LedgerError> {
    for old in salvages(tenant_root)?.iter().skip(SALVAGES_MAX) {
        let dir = tenant_root.join("salvage").join(&old.name);
        fs::remove_dir_all(&dir).map_err(|error| LedgerError::io("remove", dir, error))?;
    }
    Ok(())
}

fn discard_entry(entry: &Path) {
    if let Err(error) = fs::remove_dir_all(entry) {
        tracing::warn!(path = %entry.display(), %error, "failed to remove an unfinished salvage");
    }
}

fn epoch_of(name: &str) -> Option<Epoch> {
    let rest = name.strip_prefix('e')?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    (digits.len() >= 8).then(|| digits.parse().ok().and_then(|number| Epoch::new(number).ok())).flatten()
}
