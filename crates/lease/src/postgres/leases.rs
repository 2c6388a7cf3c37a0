//! The lease rows: each change is one conditional statement.

use std::time::Duration;

use leasehold_types::{Epoch, Floor, LeaseKey, OrgSlug, ReplicaId, TenantId, TenureId, Timestamp};
use tokio_postgres::{Row, types::Type};

use super::{
    connections::Lent,
    rows::{ClaimColumns, column, lease_row, micros},
    statements::Statements,
};
use crate::{
    Acquisition, Claim, Grant, Holder, LeaseError, LeaseRow, Owner, Recheck,
    columns::{epoch_of, floor_of, key_of},
};

/// How often an acquisition looks again at a row that changed between two of its statements.
const LOOKS_MAX: u32 = 5;

pub(super) async fn acquire(
    lent: &mut Lent,
    sql: &Statements,
    key: &LeaseKey,
    replica: &ReplicaId,
    tenure: TenureId,
    ttl: Duration,
    though_paused: bool,
) -> Result<Acquisition, LeaseError> {
    let action = format!("acquire {key} for {replica}");
    let (name, owner, tenure, ttl) = (key.to_string(), replica.as_str(), tenure.as_uuid(), micros(ttl));
    let epoch_max = Epoch::MAX.as_i64();
    for _ in 0..LOOKS_MAX {
        let taken = lent
            .change(
                &action,
                &sql.acquire,
                &[
                    (&name, Type::TEXT),
                    (&owner, Type::TEXT),
                    (&tenure, Type::UUID),
                    (&ttl, Type::INT8),
                    (&epoch_max, Type::INT8),
                    (&though_paused, Type::BOOL),
                ],
            )
            .await?;
        if let Some(row) = taken.first() {
            return Ok(Acquisition::Granted(grant(key, row)?));
        }
        match read_as(lent, sql, &action, key).await? {
            None => {
                let parameters = [
                    (&name as _, Type::TEXT),
                    (&owner as _, Type::TEXT),
                    (&tenure as _, Type::UUID),
                    (&ttl as _, Type::INT8),
                ];
                let inserted = lent.change(&action, &sql.insert, &parameters).await?;
                if let Some(row) = inserted.first() {
                    return Ok(Acquisition::Granted(grant(key, row)?));
                }
            }
            Some(LeaseRow { epoch, owner: Some(owner), .. }) if !owner.remaining.is_zero() => {
                let Owner { replica, endpoint, remaining, .. } = owner;
                return Ok(Acquisition::Held(Holder { replica, endpoint, epoch, remaining }));
            }
            Some(LeaseRow { paused_at: Some(since), .. }) if !though_paused => {
                return Ok(Acquisition::Paused { since });
            }
            Some(row) if row.epoch == Epoch::MAX => {
                return Err(LeaseError::EpochsExhausted { key: row.key, epoch: row.epoch });
            }
            // It was released, ran out or was resumed after we were refused.
            Some(_) => {}
        }
    }
    let detail = format!("its row changed hands {LOOKS_MAX} times meanwhile");
    Err(LeaseError::Unavailable { action, detail })
}

fn grant(key: &LeaseKey, row: &Row) -> Result<Grant, LeaseError> {
    Ok(Grant { epoch: epoch_of(key, column(row, 0)?)?, floor: floor_of(key, column(row, 1)?)? })
}

pub(super) async fn pause(
    lent: &mut Lent,
    sql: &Statements,
    key: &LeaseKey,
) -> Result<Option<bool>, LeaseError> {
    let action = format!("pause {key}");
    let paused = lent.change(&action, &sql.pause, &[(&key.to_string(), Type::TEXT)]).await?;
    if !paused.is_empty() {
        return Ok(Some(true));
    }
    Ok(read_as(lent, sql, &action, key).await?.map(|_| false))
}

pub(super) async fn resume(lent: &mut Lent, sql: &Statements, key: &LeaseKey) -> Result<bool, LeaseError> {
    let resumed =
        lent.change(&format!("resume {key}"), &sql.resume, &[(&key.to_string(), Type::TEXT)]).await?;
    Ok(!resumed.is_empty())
}

pub(super) async fn release(lent: &mut Lent, sql: &Statements, claim: &Claim) -> Result<bool, LeaseError> {
    let columns = ClaimColumns::from(claim);
    let changed = lent.change(&act("release", claim), &sql.release, &columns.parameters()).await?;
    Ok(!changed.is_empty())
}

pub(super) async fn raise_floor(
    lent: &mut Lent,
    sql: &Statements,
    claim: &Claim,
    recheck_after: Duration,
) -> Result<Option<Floor>, LeaseError> {
    let (columns, recheck_after) = (ClaimColumns::from(claim), micros(recheck_after));
    let mut parameters = columns.parameters();
    parameters.push((&recheck_after, Type::INT8));
    let raised = lent.change(&act("raise the floor of", claim), &sql.raise_floor, &parameters).await?;
    raised.first().map(|row| floor_of(&claim.key, column(row, 0)?)).transpose()
}

pub(super) async fn store_receipt(
    lent: &mut Lent,
    sql: &Statements,
    claim: &Claim,
    receipt: &str,
) -> Result<bool, LeaseError> {
    let columns = ClaimColumns::from(claim);
    let mut parameters = columns.parameters();
    parameters.push((&receipt, Type::TEXT));
    let stored = lent.change(&act("store the receipt of", claim), &sql.store_receipt, &parameters).await?;
    Ok(!stored.is_empty())
}

pub(super) async fn advance_epoch(
    lent: &mut Lent,
    sql: &Statements,
    claim: &Claim,
    beyond: Epoch,
) -> Result<Option<Epoch>, LeaseError> {
    let action = act("advance", claim);
    let (columns, past, epoch_max) = (ClaimColumns::from(claim), beyond.as_i64(), Epoch::MAX.as_i64());
    let mut parameters = columns.parameters();
    parameters.extend([(&past as _, Type::INT8), (&epoch_max as _, Type::INT8)]);
    let advanced = lent.change(&action, &sql.advance_epoch, &parameters).await?;
    if let Some(row) = advanced.first() {
        return Ok(Some(epoch_of(&claim.key, column(row, 0)?)?));
    }
    match read_as(lent, sql, &action, &claim.key).await? {
        Some(row) if row.is_of(claim) && row.epoch.max(beyond) == Epoch::MAX => {
            Err(LeaseError::EpochsExhausted { key: row.key, epoch: Epoch::MAX })
        }
        _ => Ok(None),
    }
}

pub(super) async fn read(
    lent: &mut Lent,
    sql: &Statements,
    key: &LeaseKey,
) -> Result<Option<LeaseRow>, LeaseError> {
    read_as(lent, sql, &format!("read {key}"), key).await
}

async fn read_as(
    lent: &mut Lent,
    sql: &Statements,
    action: &str,
    key: &LeaseKey,
) -> Result<Option<LeaseRow>, LeaseError> {
    let rows = lent.read(action, &sql.read, &[(&key.to_string(), Type::TEXT)]).await?;
    rows.first().map(lease_row).transpose()
}

pub(super) async fn list(
    lent: &mut Lent,
    sql: &Statements,
    org: &OrgSlug,
    after: Option<&TenantId>,
    limit: u32,
) -> Result<Vec<LeaseRow>, LeaseError> {
    let after = after.map_or_else(|| format!("{org}/"), |tenant| format!("{org}/{tenant}"));
    // `0` is the character after `/`: what lies between is the organization's.
    let (end, limit) = (format!("{org}0"), i64::from(limit));
    let parameters = [(&after as _, Type::TEXT), (&end as _, Type::TEXT), (&limit as _, Type::INT8)];
    let rows = lent.read(&format!("list {org}"), &sql.list, &parameters).await?;
    rows.iter().map(lease_row).collect()
}

pub(super) async fn due_rechecks(
    lent: &mut Lent,
    sql: &Statements,
    limit: u32,
) -> Result<Vec<Recheck>, LeaseError> {
    let limit = i64::from(limit);
    let rows = lent.read("list due rechecks", &sql.due_rechecks, &[(&limit, Type::INT8)]).await?;
    rows.iter()
        .map(|row| {
            let key = key_of(column(row, 0)?)?;
            let floor = floor_of(&key, column(row, 1)?)?;
            let forgotten_at = Timestamp::from_millis(column(row, 2)?);
            Ok(Recheck { key, floor, forgotten_at, due_at: Timestamp::from_millis(column(row, 3)?) })
        })
        .collect()
}

pub(super) async fn schedule_recheck(
    lent: &mut Lent,
    sql: &Statements,
    recheck: &Recheck,
    next: Option<Duration>,
) -> Result<bool, LeaseError> {
    let action = format!("schedule the recheck of {}", recheck.key);
    let (key, due) = (recheck.key.to_string(), recheck.due_at.as_millis());
    let floor = i64::try_from(recheck.floor.get()).unwrap_or(i64::MAX);
    let next = next.map(micros);
    let parameters = [
        (&key as _, Type::TEXT),
        (&floor as _, Type::INT8),
        (&due as _, Type::INT8),
        (&next as _, Type::INT8),
    ];
    let taken = lent.change(&action, &sql.schedule_recheck, &parameters).await?;
    Ok(!taken.is_empty())
}

pub(super) fn act(verb: &str, claim: &Claim) -> String {
    format!("{verb} {} at epoch {}", claim.key, claim.epoch)
}
