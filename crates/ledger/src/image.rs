//! Checkpoints, and images of a ledger beside its writer.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_types::Position;
use rusqlite::{
    Connection, ErrorCode as Sqlite, OpenFlags,
    backup::{Backup, StepResult},
    wal::CheckpointMode,
};

use crate::{Gate, Ledger, LedgerError, connection, history, ledger::session, schema, session::from_sqlite};

/// How often a checkpoint is tried with the writer held before an image is taken the slower way.
const TRIES: usize = 3;

/// How long maintenance waits for the writer, in real time: work in `run` may hold it for as long as it likes.
const WRITER_PATIENCE: Duration = Duration::from_millis(100);

/// A copy of a ledger: a plain `SQLite` file, whole by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where it is.
    pub path: PathBuf,
    /// How many commits of this tenure it has, at least; for [`Ledger::mark_published`].
    pub commits: u64,
    /// How many bytes this tenure had written by then, at least; for [`Ledger::mark_published`].
    pub written_bytes: u64,
    /// Its last event, at least what was acknowledged before it was begun.
    pub position: Position,
    /// Bytes of a page.
    pub page_size: u64,
    /// How many pages it has.
    pub pages: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointOutcome {
    /// Whether it took the whole log; a reader that began earlier keeps it from that.
    pub complete: bool,
    /// Frames that were in the log.
    pub frames: u64,
    /// Frames of them that are in the file now.
    pub moved: u64,
}

/// What is true of the file while no checkpoint runs.
struct Still {
    commits: u64,
    written_bytes: u64,
    position: Position,
    page_size: u64,
    pages: u64,
}

type Maintenance<'a> = MutexGuard<'a, Option<Connection>>;

impl Ledger {
    /// Moves what is in the log into the file, off the commit path: most of it beside the writer, the rest with the
    /// writer held for that short.
    pub fn checkpoint(&self) -> Result<CheckpointOutcome, LedgerError> {
        let mut maintenance = self.maintenance();
        let connection = self.maintenance_connection(&mut maintenance)?;
        let before = passive(connection, self.path())?;
        let held = self.writer.acquire_for_maintenance(WRITER_PATIENCE)?;
        let Some(_held) = held else { return Ok(before) };
        let outcome = passive(connection, self.path())?;
        if outcome.complete {
            self.counters.checkpointed();
        }
        Ok(outcome)
    }

    /// Writes a copy of the ledger to `to`, which must not exist; what was written of it is removed when this fails.
    /// Writers go on beside it.
    ///
    /// Asks no gate: an image of a tenure that has lost its lease is never read (protocol.md), and the last one is
    /// taken when the gate is closed.
    pub fn take_image(&self, to: &Path) -> Result<Image, LedgerError> {
        let mut maintenance = self.maintenance();
        let target = create_new(to)?;
        let still = self.hold_still(&mut maintenance).and_then(|still| match still {
            Some(still) => self.copy(&target, &still, to).map(|()| still),
            None => self.back_up(to),
        });
        // The lock was what kept the file still.
        drop(maintenance);
        match still {
            Ok(still) => Ok(Image {
                path: to.to_owned(),
                commits: still.commits,
                written_bytes: still.written_bytes,
                position: still.position,
                page_size: still.page_size,
                pages: still.pages,
                bytes: still.pages * still.page_size,
            }),
            Err(error) => {
                discard(to);
                Err(error)
            }
        }
    }

    /// [`Self::take_image`] for a caller: gated before and after.
    pub fn export(&self, gate: &Arc<dyn Gate>, to: &Path) -> Result<Image, LedgerError> {
        gate.pass()?;
        let image = self.take_image(to)?;
        if let Err(refusal) = gate.pass() {
            discard(to);
            return Err(refusal.into());
        }
        Ok(image)
    }

    /// Takes note that an image was published: the ledger is dirty again by what was committed after it was taken.
    pub fn mark_published(&self, image: &Image) {
        self.counters.published(image.commits, image.written_bytes);
    }

    fn maintenance(&self) -> Maintenance<'_> {
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn maintenance_connection<'m>(
        &self,
        maintenance: &'m mut Maintenance<'_>,
    ) -> Result<&'m Connection, LedgerError> {
        if maintenance.is_none() {
            self.live.check_in_place()?;
            let connection = connection::maintenance(self.path())?;
            // Its first read opens the log; before that there is nothing that it could checkpoint.
            schema::is_blank(&connection).map_err(|error| from_sqlite(error, self.path()))?;
            self.live.check_in_place()?;
            **maintenance = Some(connection);
        }
        maintenance.as_ref().ok_or(LedgerError::Closed { epoch: self.epoch })
    }

    /// Has the whole log in the file and says what the file is then; `None` when a reader or a long transaction is in
    /// the way. It stays so for as long as `maintenance` is locked: nothing else writes into the file.
    fn hold_still(&self, maintenance: &mut Maintenance<'_>) -> Result<Option<Still>, LedgerError> {
        let connection = self.maintenance_connection(maintenance)?;
        for _ in 0..TRIES {
            // The most of it without the writer, so that the writer is held for the rest only.
            passive(connection, self.path())?;
            let Some(_held) = self.writer.acquire_for_maintenance(WRITER_PATIENCE)? else { return Ok(None) };
            if passive(connection, self.path())?.complete {
                self.counters.checkpointed();
                let (page_size, pages) =
                    pages(connection).map_err(|error| from_sqlite(error, self.path()))?;
                return Ok(Some(Still {
                    commits: self.counters.commits(),
                    written_bytes: self.counters.written(),
                    position: self.counters.position(),
                    page_size,
                    pages,
                }));
            }
        }
        Ok(None)
    }

    fn copy(&self, target: &File, still: &Still, to: &Path) -> Result<(), LedgerError> {
        let bytes = still.pages * still.page_size;
        if self.live.len()? < bytes {
            let detail = format!("it is shorter than its {} pages of {} bytes", still.pages, still.page_size);
            return Err(LedgerError::Damaged { path: self.path().to_owned(), detail });
        }
        self.live.copy_to(target, bytes).map_err(|error| LedgerError::io("copy the ledger to", to, error))
    }

    /// The slower way, through a reader's snapshot and SQLite's own backup.
    fn back_up(&self, to: &Path) -> Result<Still, LedgerError> {
        tracing::debug!(path = %self.path().display(), "an image is taken by backup: a reader or a transaction holds the log");
        let reader = self.open_reader()?;
        let session = session(&reader, &self.limits, self.path());
        let _ours = session.control.ours();
        let failed = |error| from_sqlite(error, self.path());
        // Before the snapshot begins: it then has at least these.
        let (commits, written_bytes) = (self.counters.commits(), self.counters.written());
        session.connection.execute_batch("BEGIN").map_err(failed)?;
        let position = history::last(&session, self.epoch)?;
        let (page_size, pages) = pages(session.connection).map_err(failed)?;
        back_up(session.connection, self.path(), to)?;
        session.connection.execute_batch("ROLLBACK").map_err(failed)?;
        Ok(Still { commits, written_bytes, position, page_size, pages })
    }
}

fn passive(connection: &Connection, path: &Path) -> Result<CheckpointOutcome, LedgerError> {
    match connection.wal_checkpoint_v2(Some(rusqlite::MAIN_DB), CheckpointMode::PASSIVE) {
        Ok((frames, moved)) => {
            let (frames, moved) = (u64::try_from(frames), u64::try_from(moved));
            Ok(match (frames, moved) {
                (Ok(frames), Ok(moved)) => CheckpointOutcome { complete: frames == moved, frames, moved },
                _ => CheckpointOutcome { complete: false, frames: 0, moved: 0 },
            })
        }
        // Somebody reads the log's index at this moment.
        Err(error) if error.sqlite_error_code() == Some(Sqlite::DatabaseBusy) => {
            Ok(CheckpointOutcome { complete: false, frames: 0, moved: 0 })
        }
        Err(error) => Err(from_sqlite(error, path)),
    }
}

fn pages(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    let number = |sql: &str| {
        connection.query_row(sql, [], |row| row.get::<_, i64>(0).map(|n| u64::try_from(n).unwrap_or(0)))
    };
    Ok((number("PRAGMA page_size")?, number("PRAGMA page_count")?))
}

/// Copies what `from` sees to the file at `to`, which is there and empty.
pub(crate) fn back_up(from: &Connection, path: &Path, to: &Path) -> Result<(), LedgerError> {
    let failed = |error| from_sqlite(error, to);
    let mut target = connection::open(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    target.execute_batch("PRAGMA synchronous = OFF").map_err(failed)?;
    target.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(())).map_err(failed)?;
    let backup = Backup::new(from, &mut target).map_err(failed)?;
    match backup.step(-1).map_err(failed)? {
        StepResult::Done => Ok(()),
        step => {
            Err(LedgerError::io("back up", path, std::io::Error::other(format!("SQLite answered {step:?}"))))
        }
    }
}

pub(crate) fn create_new(path: &Path) -> Result<File, LedgerError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| LedgerError::io("create", path, error))
}

/// Removes what a failed copy left; the failure itself is what the caller hears of.
pub(crate) fn discard(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "failed to remove an unfinished copy");
    }
}
