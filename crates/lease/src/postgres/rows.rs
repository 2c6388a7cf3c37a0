//! Values on their way into a row and out of it.

use std::time::Duration;

use leasehold_types::{TenureId, Timestamp};
use tokio_postgres::{
    Row,
    types::{FromSql, Type},
};
use uuid::Uuid;

use super::connections::Parameter;
use crate::{
    Claim, LeaseError, LeaseRow, Owner,
    columns::{damaged, epoch_of, floor_of, key_of},
};

/// The longest time that is counted from the database's present: a thousand years.
const SPAN_MAX: Duration = Duration::from_secs(31_557_600_000);

/// A claim as a statement's parameters `$2` to `$5`.
pub(super) struct ClaimColumns {
    key: String,
    owner: String,
    tenure: Uuid,
    epoch: i64,
}

impl From<&Claim> for ClaimColumns {
    fn from(claim: &Claim) -> Self {
        Self {
            key: claim.key.to_string(),
            owner: claim.replica.to_string(),
            tenure: claim.tenure.as_uuid(),
            epoch: claim.epoch.as_i64(),
        }
    }
}

impl ClaimColumns {
    pub(super) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![
            (&self.key, Type::TEXT),
            (&self.owner, Type::TEXT),
            (&self.tenure, Type::UUID),
            (&self.epoch, Type::INT8),
        ]
    }
}

/// Rounded up: nothing runs out before its time.
pub(super) fn micros(span: Duration) -> i64 {
    i64::try_from(span.min(SPAN_MAX).as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

/// Zero where it is negative: the time is over.
pub(super) fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Reads column `at`; one of another type than our tables have is damage.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, LeaseError> {
    row.try_get(at).map_err(|error| damaged(row_name(row).as_str(), &error))
}

fn row_name(row: &Row) -> String {
    row.try_get::<_, String>(0).unwrap_or_else(|_| "an unnamed row".into())
}

/// A row of `statements::ROW`.
pub(super) fn lease_row(row: &Row) -> Result<LeaseRow, LeaseError> {
    let key = key_of(column(row, 0)?)?;
    let owner: Option<&str> = column(row, 2)?;
    let owner = match (owner, column::<Option<Uuid>>(row, 3)?, column::<Option<i64>>(row, 4)?) {
        (Some(replica), Some(tenure), Some(remaining)) => Some(Owner {
            replica: replica.parse().map_err(|error| damaged(&key, &error))?,
            endpoint: column(row, 9)?,
            tenure: TenureId::new(tenure),
            remaining: span(remaining),
        }),
        (None, None, None) => None,
        _ => return Err(damaged(&key, "it has half an owner")),
    };
    Ok(LeaseRow {
        epoch: epoch_of(&key, column(row, 1)?)?,
        owner,
        floor: floor_of(&key, column(row, 5)?)?,
        forgotten_at: column::<Option<i64>>(row, 6)?.map(Timestamp::from_millis),
        receipt: column(row, 7)?,
        paused_at: column::<Option<i64>>(row, 8)?.map(Timestamp::from_millis),
        key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_rounded_up_and_bounded() {
        assert_eq!(micros(Duration::from_nanos(1_001)), 2);
        assert_eq!(micros(Duration::from_secs(10)), 10_000_000);
        assert_eq!(micros(Duration::MAX), micros(SPAN_MAX));
        assert_eq!((span(-1), span(7)), (Duration::ZERO, Duration::from_micros(7)));
    }
}
