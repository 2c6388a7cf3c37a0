//! The ledger as callers see it between their own calls: owned, cloneable, and no way to the connection.

use std::{fmt, path::PathBuf, sync::Arc};

use leasehold_ledger::{
    Appended, EventPage, EventQuery, ExecuteAnswer, Gate, IdempotencyKey, Ledger, LedgerError, NewEvent,
    Prepared, Rows, Statement, Value, View,
};
use leasehold_types::Position;

use crate::{RunError, TenureError, tenure::Tenure};

/// A guarded view that is held on its own. Each call is gated, takes the connection for that call only, and runs where it may
/// block. Closing or dropping it closes nothing of the router's (contract row V2).
#[derive(Clone)]
pub struct LedgerRef {
    tenure: Arc<Tenure>,
    gate: Arc<dyn Gate>,
}

impl LedgerRef {
    pub(crate) const fn new(tenure: Arc<Tenure>, gate: Arc<dyn Gate>) -> Self {
        Self { tenure, gate }
    }

    /// Makes one call on a thread that may block.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ledger, &Arc<dyn Gate>) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, TenureError> {
        self.gate.pass().map_err(|refusal| self.tenure.refused(refusal))?;
        self.tenure.called();
        let ledger = self.tenure.ledger()?;
        let (tenure, gate) = (Arc::clone(&self.tenure), Arc::clone(&self.gate));
        self.tenure
            .blocking(move || {
                let answer = work(&ledger, &gate);
                tenure.wrote_if_dirty(&ledger);
                answer.map_err(|source| TenureError::ledger(&tenure.key, tenure.epoch(), source))
            })
            .await?
    }

    /// Appends a batch atomically.
    pub async fn append(&self, batch: Vec<NewEvent>) -> Result<Vec<Appended>, TenureError> {
        self.call(move |ledger, gate| ledger.append(gate, &batch)).await
    }

    /// Reads a page of events.
    pub async fn events(&self, query: EventQuery) -> Result<EventPage, TenureError> {
        self.call(move |ledger, gate| ledger.events(gate, &query)).await
    }

    /// Whether `position` is part of this history: [`LedgerError::HistoryRewound`] if it is in a tail that was lost.
    pub async fn check_position(&self, position: Position) -> Result<(), TenureError> {
        self.call(move |ledger, gate| ledger.check_position(gate, position)).await
    }

    /// Runs reading SQL beside the writer.
    pub async fn query(&self, sql: impl Into<String>, params: Vec<Value>) -> Result<Rows, TenureError> {
        let sql = sql.into();
        self.call(move |ledger, gate| ledger.query(gate, &sql, &params)).await
    }

    /// Runs writing SQL in one transaction, once per idempotency key where there is one.
    pub async fn execute(
        &self,
        statements: Vec<Statement>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<ExecuteAnswer, TenureError> {
        self.call(move |ledger, gate| ledger.execute(gate, &statements, idempotency.as_ref())).await
    }

    /// Runs `work` in one write transaction; see [`Handle::run`](crate::Handle::run).
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, RunError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    {
        let outcome = self
            .call(move |ledger, gate| match ledger.run(gate, work) {
                Ok(value) => Ok(Ok(value)),
                Err(leasehold_ledger::RunError::Work(error)) => Ok(Err(error)),
                Err(leasehold_ledger::RunError::Ledger(error)) => Err(error),
            })
            .await;
        outcome?.map_err(RunError::Work)
    }

    /// A statement that was found to be one that callers may run. It is gated each time it runs.
    pub async fn prepare(&self, sql: impl Into<String>) -> Result<PreparedRef, TenureError> {
        let sql = sql.into();
        let prepared = self.call(move |ledger, gate| ledger.prepare(gate, &sql)).await?;
        Ok(PreparedRef { ledger: self.clone(), prepared: Arc::new(prepared) })
    }

    /// Writes a consistent copy of the ledger to a new file.
    pub async fn export(&self, to: PathBuf) -> Result<leasehold_ledger::Image, TenureError> {
        self.call(move |ledger, gate| ledger.export(gate, &to)).await
    }

    /// The last acknowledged event; with `seq` 0 there is none.
    pub fn position(&self) -> Result<Position, TenureError> {
        self.gate.pass().map_err(|refusal| self.tenure.refused(refusal))?;
        Ok(self.tenure.ledger()?.position())
    }

    /// Lets go of this view. The router's own connection stays open.
    pub fn close(self) {
        drop(self);
    }
}

impl fmt::Debug for LedgerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerRef").field("key", &self.tenure.key).finish_non_exhaustive()
    }
}

/// A prepared statement of a [`LedgerRef`]: a checked text, gated each time it runs (contract row V1).
#[derive(Clone, Debug)]
pub struct PreparedRef {
    ledger: LedgerRef,
    prepared: Arc<Prepared>,
}

impl PreparedRef {
    /// What was prepared.
    #[must_use]
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// Runs it as a reading statement.
    pub async fn query(&self, params: Vec<Value>) -> Result<Rows, TenureError> {
        self.ledger.query(self.prepared.sql(), params).await
    }

    /// Runs it as a writing statement, in a transaction of its own.
    pub async fn execute(&self, params: Vec<Value>) -> Result<ExecuteAnswer, TenureError> {
        let statement = Statement { sql: self.prepared.sql().into(), params };
        self.ledger.execute(vec![statement], None).await
    }
}
