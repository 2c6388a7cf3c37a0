//! The connections: a small pool for calls, and connections of their own for renewals, so that these never wait behind it.

use std::{future::Future, time::Duration};

use deadpool_postgres::{ClientWrapper, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use futures::future::{Either, select};
use leasehold_types::Timer as _;
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

use super::{
    failure,
    options::{Plan, PostgresOptions, misconfigured},
    statements::Statement,
};
use crate::{LeaseError, TokioTimer};

/// Two, so that a chunk of renewals that waits for a row's lock does not hold up the others.
pub(super) const RENEWAL_CONNECTIONS: usize = 2;

/// A statement's parameter and its type: statements are never prepared under a name, since a pooler may give each of them another
/// server connection.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// How long each part of a call may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    pub(super) statement: Duration,
    pub(super) lock: Duration,
}

#[derive(Clone)]
pub(super) struct Connections {
    calls: Pool,
    renewals: Pool,
    limits: Limits,
}

impl Connections {
    /// Opens none yet.
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, LeaseError> {
        let limits = Limits {
            connect: options.connect_limit,
            statement: options.statement_limit,
            lock: options.lock_limit,
        };
        Ok(Self {
            calls: pool(options.plan()?, options.pool_max, limits)?,
            renewals: pool(options.plan()?, RENEWAL_CONNECTIONS, limits)?,
            limits,
        })
    }

    pub(super) async fn for_call(&self, action: &str) -> Result<Lent, LeaseError> {
        Lent::of(&self.calls, action, self.limits).await
    }

    pub(super) async fn for_renewal(&self, action: &str) -> Result<Lent, LeaseError> {
        Lent::of(&self.renewals, action, self.limits).await
    }
}

fn pool(plan: Plan, size: usize, limits: Limits) -> Result<Pool, LeaseError> {
    // Only whether the connection was closed is asked when it is lent again: a round trip each time would double the cost of a renewal.
    let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(plan.config, plan.tls, manager_config);
    Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .create_timeout(Some(limits.connect))
        .wait_timeout(Some(limits.statement))
        .build()
        .map_err(|error| misconfigured(&error.to_string()))
}

/// One connection that no pool keeps.
pub(super) async fn alone(options: &PostgresOptions, action: &str) -> Result<ClientWrapper, LeaseError> {
    let limit = options.connect_limit;
    let pool = pool(options.plan()?, 1, Limits { connect: limit, statement: limit, lock: limit })?;
    let lent = pool.get().await.map_err(|error| failure::of_pool(action, &error, limit, limit))?;
    Ok(Object::take(lent))
}

/// A connection lent for one call. Dropped in the middle of a statement, or after one that failed on the way, it is closed: an answer that
/// is still to come must not hold up the next caller, nor be taken for its own.
///
/// Where the server did not answer or went away, the pool's idle connections are closed with it: they are as old, and each would cost
/// another call the same.
pub(super) struct Lent {
    pool: Pool,
    /// There until the end.
    connection: Option<Object>,
    limits: Limits,
    /// Whether nothing is under way on it.
    is_idle: bool,
}

impl Lent {
    async fn of(pool: &Pool, action: &str, limits: Limits) -> Result<Self, LeaseError> {
        let lent = pool
            .get()
            .await
            .map_err(|error| failure::of_pool(action, &error, limits.connect, limits.statement))?;
        Ok(Self { pool: pool.clone(), connection: Some(lent), limits, is_idle: true })
    }

    /// Runs a statement that changes nothing.
    pub(super) async fn read(
        &mut self,
        action: &str,
        sql: &Statement,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LeaseError> {
        let Some(connection) = &self.connection else {
            return Err(LeaseError::Unavailable { action: action.into(), detail: "no connection".into() });
        };
        self.is_idle = false;
        match within(self.limits.statement, connection.query_typed(sql.text(), parameters)).await {
            Some(Ok(rows)) => {
                self.is_idle = true;
                Ok(rows)
            }
            Some(Err(error)) => {
                self.is_idle = failure::leaves_connection_usable(&error);
                if !self.is_idle {
                    self.pool.retain(|_, _| false);
                }
                Err(failure::of_statement(action, &error, self.limits.lock))
            }
            None => {
                self.pool.retain(|_, _| false);
                Err(LeaseError::Timeout { action: action.into(), limit: self.limits.statement })
            }
        }
    }

    /// Runs a statement that begins with [`statements::LIMITS`](super::statements::LIMITS), whose parameter is `$1`; `parameters` begin
    /// at `$2`.
    pub(super) async fn change(
        &mut self,
        action: &str,
        sql: &Statement,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LeaseError> {
        let lock_limit = format!("{}ms", self.limits.lock.as_millis().max(1));
        let mut all: Vec<Parameter<'_>> = Vec::with_capacity(parameters.len() + 1);
        all.push((&lock_limit, Type::TEXT));
        all.extend(parameters.iter().cloned());
        self.read(action, sql, &all).await
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.is_idle
        {
            drop(Object::take(connection));
        }
    }
}

/// `None`: it took longer than `limit` and was dropped.
pub(super) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(std::pin::pin!(work), TokioTimer.sleep(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
