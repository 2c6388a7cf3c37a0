//! One turn at the file: a transaction, and the store's time in it.

use std::time::Duration;

use leasehold_types::{Clock, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::LeaseError;

/// A transaction and the store's two times, read once the file was ours: a statement that had to wait is judged by the moment at which
/// it runs.
pub(super) struct Turn<'a> {
    transaction: Transaction<'a>,
    /// Nanoseconds of the machine's clock.
    now_nanos: u64,
    wall: Timestamp,
}

/// Why a turn was not completed.
pub(super) enum Failure {
    Sql(rusqlite::Error),
    Lease(LeaseError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<LeaseError> for Failure {
    fn from(error: LeaseError) -> Self {
        Self::Lease(error)
    }
}

impl Failure {
    pub(super) fn while_doing(self, action: &str) -> LeaseError {
        match self {
            Self::Lease(error) => error,
            Self::Sql(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) => {
                LeaseError::Full { action: action.into() }
            }
            Self::Sql(error) => LeaseError::Unavailable { action: action.into(), detail: error.to_string() },
        }
    }
}

/// What a turn does to the file.
#[derive(Clone, Copy)]
pub(super) enum Access {
    /// It only reads, and waits for nobody.
    Read,
    /// It may change something: no other turn that may runs beside it.
    Change,
}

impl<'a> Turn<'a> {
    pub(super) fn begin(
        connection: &'a mut Connection,
        clock: &dyn Clock,
        access: Access,
    ) -> rusqlite::Result<Self> {
        let behavior = match access {
            Access::Read => TransactionBehavior::Deferred,
            Access::Change => TransactionBehavior::Immediate,
        };
        let transaction = connection.transaction_with_behavior(behavior)?;
        Ok(Self { transaction, now_nanos: clock.now().as_nanos(), wall: clock.wall() })
    }

    pub(super) fn sql(&self) -> &Transaction<'a> {
        &self.transaction
    }

    pub(super) fn commit(self) -> rusqlite::Result<()> {
        self.transaction.commit()
    }

    /// The store's present, rounded down: nothing has run out before its time.
    pub(super) fn now_ms(&self) -> i64 {
        i64::try_from(self.now_nanos / NANOS_PER_MS).unwrap_or(i64::MAX)
    }

    /// The time `wait` from the store's present, rounded up: nothing runs out before its time.
    pub(super) fn ms_in(&self, wait: Duration) -> i64 {
        let nanos = u128::from(self.now_nanos).saturating_add(wait.as_nanos());
        i64::try_from(nanos.div_ceil(u128::from(NANOS_PER_MS))).unwrap_or(i64::MAX)
    }

    /// The calendar.
    pub(super) const fn wall(&self) -> Timestamp {
        self.wall
    }

    /// How long until `at_ms` of the store's clock.
    pub(super) fn until(&self, at_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(at_ms.saturating_sub(self.now_ms())).unwrap_or(0))
    }

    /// How long ago `at_ms` of the store's clock was.
    pub(super) fn since(&self, at_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.now_ms().saturating_sub(at_ms)).unwrap_or(0))
    }
}

const NANOS_PER_MS: u64 = 1_000_000;
