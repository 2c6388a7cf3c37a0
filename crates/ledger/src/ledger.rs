//! One tenant's ledger, open.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use leasehold_types::{Clock, Epoch, Position, TenureId};
use rusqlite::Connection;

use crate::{
    Appended, EventPage, EventQuery, ExecuteAnswer, Gate, IdempotencyKey, LedgerError, LedgerOptions, Limits,
    NewEvent, Rows, RunError, Statement, Value, View,
    append::{Author, Tail},
    connection::{self, Guarded},
    counters::Counters,
    history,
    live::LiveFile,
    schema,
    session::{Budget, Session, from_sqlite},
    slot::{Borrowed, Patience, Pool, Slot},
    view,
};

/// The connection that writes, and what only its holder changes.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) guarded: Guarded,
    pub(crate) tail: Tail,
}

/// One tenant's `SQLite` file in one tenure.
///
/// Every way in takes the tenure's [`Gate`] and asks it: before anything is done, at each call of a [`View`], while a
/// statement runs, and before and after a commit. Calls block; an async program makes them on a thread that may. Share
/// it in an `Arc`.
///
/// There is one writer, which calls take in turn, and readers beside it that neither wait for it nor are waited for.
pub struct Ledger {
    pub(crate) epoch: Epoch,
    pub(crate) author: Author,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) counters: Arc<Counters>,
    pub(crate) writer: Slot<Box<Writer>>,
    pub(crate) readers: Pool<Guarded>,
    /// The connection that takes checkpoints. Locked while an image is copied, since no page may move into the file
    /// then.
    pub(crate) maintenance: Mutex<Option<Connection>>,
    /// Last, so that it is dropped after every connection.
    pub(crate) live: LiveFile,
}

/// How big a ledger is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes in the log that no checkpoint took yet.
    pub wal_bytes: u64,
    /// Reader connections that are open.
    pub readers_open: usize,
}

/// A statement that was found to be one that callers may run. It is a text and no more: it holds no connection,
/// outlives nothing, and running it asks the gate like any other call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    sql: Arc<str>,
    columns: Vec<String>,
    params: usize,
    read_only: bool,
}

impl Prepared {
    /// Its text, for [`Ledger::query`] and [`Ledger::execute`].
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The names of the columns that it answers.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many parameters it has.
    #[must_use]
    pub const fn params(&self) -> usize {
        self.params
    }

    /// Whether it only reads, so that [`Ledger::query`] takes it.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }
}

impl Ledger {
    /// Opens the ledger at `path` for a tenure; a file that is not there, or empty, becomes an empty ledger. Opening
    /// it is no write: it is not dirty afterwards. A file that another live owner has open is [`LedgerError::InUse`]:
    /// a tenure first puts its own on the path ([`install`](crate::install)) or takes away what is there
    /// ([`remove_files`](crate::remove_files)).
    pub fn open(
        path: &Path,
        epoch: Epoch,
        tenure: TenureId,
        clock: Arc<dyn Clock>,
        options: LedgerOptions,
    ) -> Result<Self, LedgerError> {
        let LedgerOptions { limits, readers_max } = options;
        let live = LiveFile::open(path)?;
        let counters = Arc::new(Counters::new(Position { epoch, seq: 0 }));
        let guarded = connection::writer(path, &clock, &limits, &counters)?;
        live.check_in_place()?;
        let tail = {
            let session = session(&guarded, &limits, path);
            let _ours = session.control.ours();
            if schema::is_blank(session.connection).map_err(|error| from_sqlite(error, path))? {
                schema::create(session.connection).map_err(|error| from_sqlite(error, path))?;
            }
            schema::check(session.connection, path)?;
            Tail { last: history::last(&session, epoch)?, recorded: history::is_recorded(&session, epoch)? }
        };
        counters.set_position(tail.last);
        counters.start_over();
        Ok(Self {
            epoch,
            author: Author { epoch, tenure },
            clock,
            limits,
            counters,
            writer: Slot::new(epoch, Box::new(Writer { guarded, tail })),
            readers: Pool::new(epoch, readers_max),
            maintenance: Mutex::new(None),
            live,
        })
    }

    /// Runs `work` in one write transaction: gate, BEGIN IMMEDIATE, work, gate, COMMIT, gate. An error of the work, a
    /// refusal and a panic roll it back. When only the last gate says no, the answer is [`LedgerError::Refused`] with
    /// `outcome_unknown`, never success.
    ///
    /// The work is a plain function (contract T1): an async block answers no `Result`, so it does not compile. It must
    /// not call this ledger by another way than its view ([`LedgerError::Reentrant`]).
    pub fn run<T, E>(
        &self,
        gate: &Arc<dyn Gate>,
        work: impl FnOnce(&mut View<'_>) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        view::transact(self, gate, work)
    }

    /// Appends a batch: all of it or nothing. Answers a position per event.
    pub fn append(&self, gate: &Arc<dyn Gate>, batch: &[NewEvent]) -> Result<Vec<Appended>, LedgerError> {
        self.run(gate, |view| view.append_or_roll_back(batch)).map_err(RunError::into_ledger)
    }

    /// The same if nobody writes now, without waiting for anybody. `None`: somebody does, and nothing was done.
    pub fn append_if_free(
        &self,
        gate: &Arc<dyn Gate>,
        batch: &[NewEvent],
    ) -> Option<Result<Vec<Appended>, LedgerError>> {
        let appended = view::transact_if_free(self, gate, |view| view.append_or_roll_back(batch))?;
        Some(appended.map_err(RunError::into_ledger))
    }

    /// Appends several callers' batches in one transaction, each all or nothing and none at another's cost. All are
    /// answered after the commit and the last gate; when those fail, each batch that had succeeded has that error.
    pub fn append_groups<G: AsRef<[NewEvent]>>(
        &self,
        gate: &Arc<dyn Gate>,
        groups: &[G],
    ) -> Vec<Result<Vec<Appended>, LedgerError>> {
        let mut answers: Vec<Result<Vec<Appended>, LedgerError>> = Vec::with_capacity(groups.len());
        let committed = self.run(gate, |view| {
            answers.extend(groups.iter().map(|group| view.append(group.as_ref())));
            Ok::<_, LedgerError>(())
        });
        if let Err(error) = committed.map_err(RunError::into_ledger) {
            for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(error.clone());
            }
            answers.resize_with(groups.len(), || Err(error.clone()));
        }
        answers
    }

    /// A page of events, beside the writer. A position of a tail that was lost is [`LedgerError::HistoryRewound`].
    pub fn events(&self, gate: &Arc<dyn Gate>, query: &EventQuery) -> Result<EventPage, LedgerError> {
        self.read(gate, |session| history::page(session, self.epoch, query))
    }

    /// Refuses a position that this history does not have (a cursor or a bookmark from a tail that was lost).
    pub fn check_position(&self, gate: &Arc<dyn Gate>, asked: Position) -> Result<(), LedgerError> {
        self.read(gate, |session| {
            let _ours = session.control.ours();
            let last_seq = history::last_seq(session)?;
            history::check(session, self.epoch, asked, last_seq)
        })
    }

    /// The answer of one reading statement, beside the writer.
    pub fn query(&self, gate: &Arc<dyn Gate>, sql: &str, params: &[Value]) -> Result<Rows, LedgerError> {
        self.read(gate, |session| {
            let mut compiled = session.compile(sql)?;
            session.query(&mut compiled, params, &mut Budget::new(&self.limits))
        })
    }

    /// Runs statements in one write transaction: all take effect or none. They share the time and the result bounds of
    /// one call. Under an idempotency key they take effect once: a repeat has the kept answer. Keys are remembered for
    /// the last 100,000 such calls.
    pub fn execute(
        &self,
        gate: &Arc<dyn Gate>,
        statements: &[Statement],
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<ExecuteAnswer, LedgerError> {
        self.run(gate, |view| crate::execute::execute(view, statements, idempotency))
            .map_err(RunError::into_ledger)
    }

    /// Looks at a statement without running it.
    pub fn prepare(&self, gate: &Arc<dyn Gate>, sql: &str) -> Result<Prepared, LedgerError> {
        self.read(gate, |session| {
            let compiled = session.compile(sql)?;
            Ok(Prepared {
                sql: sql.into(),
                columns: compiled.columns(),
                params: compiled.statement().parameter_count(),
                read_only: compiled.statement().readonly(),
            })
        })
    }

    /// The position of the last event that was committed; (own epoch, 0) where there is none.
    #[must_use]
    pub fn position(&self) -> Position {
        self.counters.position()
    }

    /// The tenure's epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Where its file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.live.path()
    }

    /// The bounds that it was opened with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether something was committed that no published image has.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.counters.is_dirty()
    }

    /// Bytes that were written into the log since the last published image was taken: a bound on what a crash loses.
    #[must_use]
    pub fn unflushed_bytes(&self) -> u64 {
        self.counters.unflushed_bytes()
    }

    /// Bytes in the log that no checkpoint took yet.
    #[must_use]
    pub fn wal_bytes(&self) -> u64 {
        self.counters.wal_bytes()
    }

    /// How big it is now.
    pub fn sizes(&self) -> Result<Sizes, LedgerError> {
        Ok(Sizes {
            file_bytes: self.live.len()?,
            wal_bytes: self.wal_bytes(),
            readers_open: self.readers.open(),
        })
    }

    /// Closes the reader connections that nobody uses and answers how many there were.
    pub fn close_idle_readers(&self) -> usize {
        let idle = self.readers.close_idle();
        drop(self.maintenance.lock().unwrap_or_else(PoisonError::into_inner).take());
        idle
    }

    /// Has `SQLite` look through the file; what it finds is [`LedgerError::Damaged`]. Takes a second for some GB.
    pub fn quick_check(&self) -> Result<(), LedgerError> {
        let reader = self.open_reader()?;
        let _ours = reader.control.ours();
        crate::files::quick_check(&reader.connection, self.path())
    }

    /// Closes the connections: those in use when their calls end. Calls fail with [`LedgerError::Closed`] from now on,
    /// and the file no longer counts as alive. Dropping the ledger does the same.
    pub fn close(&self) {
        self.writer.close();
        self.readers.close();
        drop(self.maintenance.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.live.let_go();
    }

    pub(crate) fn patience<'a>(&'a self, gate: &'a Arc<dyn Gate>) -> Patience<'a> {
        Patience::new(gate.as_ref(), self.clock.as_ref(), self.limits.wait)
    }

    /// Does one gated call on a reader.
    fn read<T>(
        &self,
        gate: &Arc<dyn Gate>,
        call: impl FnOnce(&Session<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        gate.pass()?;
        let reader = self.reader(gate)?;
        // Waiting and opening may have taken long.
        gate.pass()?;
        let _armed = reader.control.arm(gate);
        reader.control.start_clock(self.limits.statement_time);
        let answer = call(&session(&reader, &self.limits, self.path()))?;
        // What was read under a lease that ran out meanwhile may not be the last word.
        gate.pass()?;
        Ok(answer)
    }

    fn reader<'a>(&'a self, gate: &'a Arc<dyn Gate>) -> Result<Borrowed<'a, Guarded>, LedgerError> {
        self.readers.acquire(self.patience(gate), || self.open_reader())
    }

    /// Opens a reader on the file that this ledger has open. Its path may lead to another tenure's by now (contract
    /// P3), and the log is opened by its name at the first read: so the path is looked at before and after both.
    pub(crate) fn open_reader(&self) -> Result<Guarded, LedgerError> {
        self.live.check_in_place()?;
        let reader = connection::reader(self.path(), &self.clock, &self.limits)?;
        {
            let _ours = reader.control.ours();
            schema::is_blank(&reader.connection).map_err(|error| from_sqlite(error, self.path()))?;
        }
        self.live.check_in_place()?;
        Ok(reader)
    }
}

/// A session on a guarded connection.
pub(crate) fn session<'c>(guarded: &'c Guarded, limits: &'c Limits, path: &'c Path) -> Session<'c> {
    Session { connection: &guarded.connection, control: &guarded.control, limits, path }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("path", &self.live.path())
            .field("epoch", &self.epoch)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

/// Where a tenant's ledger is under its root: `<tenant root>/ledger.db`.
#[must_use]
pub fn ledger_path(tenant_root: &Path) -> PathBuf {
    tenant_root.join("ledger.db")
}
