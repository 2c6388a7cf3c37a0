//! The ledger as callers see it inside a `run`.

use std::{cell::Cell, fmt, sync::Arc};

use leasehold_types::{Epoch, Position};

use crate::{
    Appended, EventPage, EventQuery, Executed, Gate, Ledger, LedgerError, NewEvent, Rows, RunError, Value,
    append::{self, Tail, Undo},
    history,
    ledger::{Writer, session},
    session::{Budget, Compiled, Session},
    slot::Held,
};

/// The ledger inside one transaction. It borrows: neither it nor what comes from it outlives the closure that it was
/// handed to, and no way leads from it to the connection. Every call asks the gate first (contract V1).
///
/// The transaction is the ledger's to begin and to end. When a call fails the others go on, and what the work answers
/// decides: an error rolls everything back.
pub struct View<'v> {
    session: Session<'v>,
    ledger: &'v Ledger,
    gate: &'v Arc<dyn Gate>,
    /// The end of the ledger as this transaction sees it; the writer's own is set once it was committed.
    tail: Cell<Tail>,
}

impl View<'_> {
    /// Appends a batch: all of it or nothing. The transaction goes on either way.
    pub fn append(&self, batch: &[NewEvent]) -> Result<Vec<Appended>, LedgerError> {
        self.append_with(batch, Undo::Batch)
    }

    /// The answer of one reading statement, which sees what this transaction did so far.
    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Rows, LedgerError> {
        self.begin_call()?;
        let mut compiled = self.session.compile(sql)?;
        self.session.query(&mut compiled, params, &mut Budget::new(self.session.limits))
    }

    /// Runs one statement.
    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<Executed, LedgerError> {
        self.begin_call()?;
        self.execute_within(sql, params, &mut Budget::new(self.session.limits))
    }

    /// Compiles a statement once, to be run many times in this transaction.
    pub fn prepare(&self, sql: &str) -> Result<PreparedStatement<'_>, LedgerError> {
        self.begin_call()?;
        Ok(PreparedStatement { view: self, compiled: self.session.compile(sql)? })
    }

    /// A page of events, with those that this transaction appended.
    pub fn events(&self, query: &EventQuery) -> Result<EventPage, LedgerError> {
        self.begin_call()?;
        history::page(&self.session, self.ledger.epoch(), query)
    }

    /// The position of the last event, this transaction's among them. Its `seq` is how many events there are.
    #[must_use]
    pub fn position(&self) -> Position {
        self.tail.get().last
    }

    /// The tenure's epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.ledger.epoch()
    }

    /// What a call does first.
    pub(crate) fn begin_call(&self) -> Result<(), LedgerError> {
        self.gate.pass()?;
        self.session.check_transaction()?;
        self.session.control.start_clock(self.session.limits.statement_time);
        Ok(())
    }

    pub(crate) fn session(&self) -> &Session<'_> {
        &self.session
    }

    /// One statement of a call that has begun.
    pub(crate) fn execute_within(
        &self,
        sql: &str,
        params: &[Value],
        budget: &mut Budget,
    ) -> Result<Executed, LedgerError> {
        let mut compiled = self.session.compile(sql)?;
        self.session.execute(&mut compiled, params, budget)
    }

    /// Appends a batch as the last thing of a transaction that is rolled back when this fails.
    pub(crate) fn append_or_roll_back(&self, batch: &[NewEvent]) -> Result<Vec<Appended>, LedgerError> {
        self.append_with(batch, Undo::Transaction)
    }

    fn append_with(&self, batch: &[NewEvent], undo: Undo) -> Result<Vec<Appended>, LedgerError> {
        self.begin_call()?;
        let mut tail = self.tail.get();
        let now = self.ledger.clock.wall();
        let appended = append::append(&self.session, self.ledger.author, &mut tail, batch, now, undo)?;
        self.tail.set(tail);
        Ok(appended)
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("position", &self.position()).finish_non_exhaustive()
    }
}

/// A compiled statement of a [`View`]. Every run of it asks the gate.
pub struct PreparedStatement<'v> {
    view: &'v View<'v>,
    compiled: Compiled<'v>,
}

impl PreparedStatement<'_> {
    /// The names of the columns that it answers.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        self.compiled.columns()
    }

    /// Its answer with these parameters, when it only reads.
    pub fn query(&mut self, params: &[Value]) -> Result<Rows, LedgerError> {
        self.view.begin_call()?;
        let session = self.view.session;
        session.query(&mut self.compiled, params, &mut Budget::new(session.limits))
    }

    /// Runs it with these parameters.
    pub fn execute(&mut self, params: &[Value]) -> Result<Executed, LedgerError> {
        self.view.begin_call()?;
        let session = self.view.session;
        session.execute(&mut self.compiled, params, &mut Budget::new(session.limits))
    }
}

impl fmt::Debug for PreparedStatement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedStatement").field("columns", &self.columns()).finish_non_exhaustive()
    }
}

/// [`Ledger::run`].
pub(crate) fn transact<T, E>(
    ledger: &Ledger,
    gate: &Arc<dyn Gate>,
    work: impl FnOnce(&mut View<'_>) -> Result<T, E>,
) -> Result<T, RunError<E>> {
    gate.pass().map_err(LedgerError::from)?;
    let writer = ledger.writer.acquire(ledger.patience(gate))?;
    transact_with(writer, ledger, gate, work)
}

/// The same if nobody has the writer now. `None`: nothing was done.
pub(crate) fn transact_if_free<T, E>(
    ledger: &Ledger,
    gate: &Arc<dyn Gate>,
    work: impl FnOnce(&mut View<'_>) -> Result<T, E>,
) -> Option<Result<T, RunError<E>>> {
    if let Err(refusal) = gate.pass() {
        return Some(Err(LedgerError::from(refusal).into()));
    }
    match ledger.writer.acquire_if_free() {
        Ok(writer) => writer.map(|writer| transact_with(writer, ledger, gate, work)),
        Err(error) => Some(Err(error.into())),
    }
}

fn transact_with<T, E>(
    mut writer: Held<'_, Box<Writer>>,
    ledger: &Ledger,
    gate: &Arc<dyn Gate>,
    work: impl FnOnce(&mut View<'_>) -> Result<T, E>,
) -> Result<T, RunError<E>> {
    let pass = || gate.pass().map_err(LedgerError::from);
    // Waiting for the writer may have taken long.
    pass()?;
    let commits = ledger.counters.commits();
    let (value, tail) = {
        let session = session(&writer.guarded, &ledger.limits, ledger.path());
        let _armed = session.control.arm(gate);
        let transaction = Transaction::begin(session)?;
        let mut view = View { session, ledger, gate, tail: Cell::new(writer.tail) };
        let value = work(&mut view).map_err(RunError::Work)?;
        let tail = view.tail.get();
        pass()?;
        transaction.commit()?;
        (value, tail)
    };
    writer.tail = tail;
    ledger.counters.set_position(tail.last);
    let wrote = ledger.counters.commits() != commits;
    gate.pass().map_err(|refusal| LedgerError::Refused { refusal, outcome_unknown: wrote })?;
    Ok(value)
}

/// An open transaction, rolled back when it is dropped: by an error, a refusal or a panic.
struct Transaction<'c> {
    session: Session<'c>,
}

impl<'c> Transaction<'c> {
    fn begin(session: Session<'c>) -> Result<Self, LedgerError> {
        ours(&session, "BEGIN IMMEDIATE")?;
        Ok(Self { session })
    }

    fn commit(self) -> Result<(), LedgerError> {
        self.session.check_transaction()?;
        ours(&self.session, "COMMIT")
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // After a commit there is none, nor after SQLite rolled back by itself.
        if !self.session.connection.is_autocommit()
            && let Err(error) = ours(&self.session, "ROLLBACK")
        {
            // The next BEGIN fails then, so nothing of this is ever committed.
            tracing::error!(path = %self.session.path.display(), %error, "failed to roll back");
        }
    }
}

fn ours(session: &Session<'_>, sql: &str) -> Result<(), LedgerError> {
    let _ours = session.control.ours();
    session.control.take_denied();
    session
        .connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]))
        .map(drop)
        .map_err(|error| session.explain(error))
}
