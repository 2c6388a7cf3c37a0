//! The lease rows: each change is one conditional statement.

use std::time::Duration;

use leasehold_types::{Epoch, Floor, LeaseKey, OrgSlug, ReplicaId, TenantId, TenureId, Timestamp};
use rusqlite::{OptionalExtension as _, Row, named_params};

use super::turn::{Failure, Turn};
use crate::{
    Acquisition, Claim, Grant, Holder, LeaseError, LeaseRow, Owner, Recheck, Renewal,
    columns::{damaged, epoch_of, floor_of, key_of},
};

const ROW: &str = "SELECT lease.lease_key, lease.epoch, lease.owner, lease.tenure_id, lease.expires_boot_ms,
       lease.forget_floor, lease.forgotten_wall_ms, lease.receipt, lease.paused_wall_ms, replica.endpoint
  FROM lease LEFT JOIN replica ON replica.replica_id = lease.owner";

pub(super) fn acquire(
    turn: &Turn<'_>,
    key: &LeaseKey,
    replica: &ReplicaId,
    tenure: TenureId,
    ttl: Duration,
    though_paused: bool,
) -> Result<Acquisition, Failure> {
    let grant = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let taken = turn
        .sql()
        .prepare_cached(
            "UPDATE lease
                SET epoch = epoch + (owner IS NOT :owner OR tenure_id IS NOT :tenure),
                    owner = :owner, tenure_id = :tenure, expires_boot_ms = :expires
              WHERE lease_key = :key
                AND ((owner = :owner AND tenure_id = :tenure)
                     OR ((owner IS NULL OR expires_boot_ms <= :now) AND epoch < :epoch_max
                         AND (paused_wall_ms IS NULL OR :though_paused)))
          RETURNING epoch, forget_floor",
        )?
        .query_row(
            named_params! {
                ":key": key.to_string(), ":owner": replica.as_str(), ":tenure": tenure.to_string(),
                ":expires": turn.ms_in(ttl), ":now": turn.now_ms(), ":epoch_max": Epoch::MAX.as_i64(),
                ":though_paused": though_paused,
            },
            grant,
        )
        .optional()?;
    if let Some((epoch, floor)) = taken {
        let grant = Grant { epoch: epoch_of(key, epoch)?, floor: floor_of(key, floor)? };
        return Ok(Acquisition::Granted(grant));
    }
    match read(turn, key)? {
        None => {
            turn.sql()
                .prepare_cached(
                    "INSERT INTO lease (lease_key, epoch, owner, tenure_id, expires_boot_ms)
                     VALUES (?1, 1, ?2, ?3, ?4)",
                )?
                .execute((key.to_string(), replica.as_str(), tenure.to_string(), turn.ms_in(ttl)))?;
            Ok(Acquisition::Granted(Grant { epoch: Epoch::FIRST, floor: Floor::NONE }))
        }
        Some(LeaseRow { epoch, owner: Some(owner), .. }) if !owner.remaining.is_zero() => {
            let Owner { replica, endpoint, remaining, .. } = owner;
            Ok(Acquisition::Held(Holder { replica, endpoint, epoch, remaining }))
        }
        Some(LeaseRow { paused_at: Some(since), .. }) if !though_paused => Ok(Acquisition::Paused { since }),
        Some(row) => Err(LeaseError::EpochsExhausted { key: row.key, epoch: row.epoch }.into()),
    }
}

pub(super) fn pause(turn: &Turn<'_>, key: &LeaseKey) -> Result<Option<bool>, Failure> {
    let paused = turn
        .sql()
        .prepare_cached(
            "UPDATE lease SET paused_wall_ms = ?2 WHERE lease_key = ?1 AND paused_wall_ms IS NULL",
        )?
        .execute((key.to_string(), turn.wall().as_millis()))?;
    if paused == 1 {
        return Ok(Some(true));
    }
    Ok(read(turn, key)?.map(|_| false))
}

pub(super) fn resume(turn: &Turn<'_>, key: &LeaseKey) -> Result<bool, Failure> {
    let resumed = turn
        .sql()
        .prepare_cached(
            "UPDATE lease SET paused_wall_ms = NULL WHERE lease_key = ?1 AND paused_wall_ms IS NOT NULL",
        )?
        .execute([key.to_string()])?;
    Ok(resumed == 1)
}

pub(super) fn renew(turn: &Turn<'_>, claims: &[Claim], ttl: Duration) -> Result<Vec<Renewal>, Failure> {
    let mut renewal = turn.sql().prepare_cached(
        "UPDATE lease SET expires_boot_ms = ?5
          WHERE lease_key = ?1 AND owner = ?2 AND tenure_id = ?3 AND epoch = ?4",
    )?;
    let expires = turn.ms_in(ttl);
    claims
        .iter()
        .map(|claim| {
            let (key, owner, tenure, epoch) = columns(claim);
            let rows = renewal.execute((key, owner, tenure, epoch, expires))?;
            Ok(if rows == 1 { Renewal::Granted } else { Renewal::Refused })
        })
        .collect()
}

pub(super) fn release(turn: &Turn<'_>, claim: &Claim) -> Result<bool, Failure> {
    let rows = turn
        .sql()
        .prepare_cached(
            "UPDATE lease SET owner = NULL, tenure_id = NULL, expires_boot_ms = 0
              WHERE lease_key = ?1 AND owner = ?2 AND tenure_id = ?3 AND epoch = ?4",
        )?
        .execute(columns(claim))?;
    Ok(rows == 1)
}

pub(super) fn raise_floor(
    turn: &Turn<'_>,
    claim: &Claim,
    recheck_after: Duration,
) -> Result<Option<Floor>, Failure> {
    let (key, owner, tenure, epoch) = columns(claim);
    let wall = turn.wall();
    turn.sql()
        .prepare_cached(
            "UPDATE lease
                SET forget_floor = max(forget_floor, ?4), forgotten_wall_ms = ?5, recheck_wall_ms = ?6,
                    receipt = NULL, paused_wall_ms = NULL
              WHERE lease_key = ?1 AND owner = ?2 AND tenure_id = ?3 AND epoch = ?4
          RETURNING forget_floor",
        )?
        .query_row(
            (key, owner, tenure, epoch, wall.as_millis(), wall.plus(recheck_after).as_millis()),
            |row| row.get(0),
        )
        .optional()?
        .map(|floor| floor_of(&claim.key, floor).map_err(Failure::from))
        .transpose()
}

pub(super) fn store_receipt(turn: &Turn<'_>, claim: &Claim, receipt: &str) -> Result<bool, Failure> {
    let (key, owner, tenure, epoch) = columns(claim);
    let rows = turn
        .sql()
        .prepare_cached(
            "UPDATE lease SET receipt = ?5
              WHERE lease_key = ?1 AND owner = ?2 AND tenure_id = ?3 AND epoch = ?4 AND forget_floor = ?4",
        )?
        .execute((key, owner, tenure, epoch, receipt))?;
    Ok(rows == 1)
}

pub(super) fn advance_epoch(turn: &Turn<'_>, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, Failure> {
    let (key, owner, tenure, epoch) = columns(claim);
    let advanced = turn
        .sql()
        .prepare_cached(
            "UPDATE lease SET epoch = max(epoch, ?5) + 1
              WHERE lease_key = ?1 AND owner = ?2 AND tenure_id = ?3 AND epoch = ?4
                AND max(epoch, ?5) < ?6
          RETURNING epoch",
        )?
        .query_row((key, owner, tenure, epoch, beyond.as_i64(), Epoch::MAX.as_i64()), |row| {
            row.get::<_, i64>(0)
        })
        .optional()?;
    if let Some(epoch) = advanced {
        return Ok(Some(epoch_of(&claim.key, epoch)?));
    }
    match read(turn, &claim.key)? {
        Some(row) if row.is_of(claim) => {
            let epoch = row.epoch.max(beyond);
            Err(LeaseError::EpochsExhausted { key: row.key, epoch }.into())
        }
        _ => Ok(None),
    }
}

pub(super) fn read(turn: &Turn<'_>, key: &LeaseKey) -> Result<Option<LeaseRow>, Failure> {
    let mut select = turn.sql().prepare_cached(&format!("{ROW} WHERE lease.lease_key = ?1"))?;
    let mut rows = select.query([key.to_string()])?;
    rows.next()?.map(|row| lease_row(turn, row)).transpose()
}

pub(super) fn list(
    turn: &Turn<'_>,
    org: &OrgSlug,
    after: Option<&TenantId>,
    limit: u32,
) -> Result<Vec<LeaseRow>, Failure> {
    let after = after.map_or_else(|| format!("{org}/"), |tenant| format!("{org}/{tenant}"));
    // `0` is the character after `/`: what lies between is the organization's.
    let end = format!("{org}0");
    let mut select = turn.sql().prepare_cached(&format!(
        "{ROW} WHERE lease.lease_key > ?1 AND lease.lease_key < ?2 ORDER BY lease.lease_key LIMIT ?3"
    ))?;
    let mut rows = select.query((after, end, limit))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(lease_row(turn, row)?);
    }
    Ok(found)
}

pub(super) fn due_rechecks(turn: &Turn<'_>, limit: u32) -> Result<Vec<Recheck>, Failure> {
    let mut select = turn.sql().prepare_cached(
        "SELECT lease_key, forget_floor, forgotten_wall_ms, recheck_wall_ms FROM lease
          WHERE recheck_wall_ms IS NOT NULL AND recheck_wall_ms <= ?1
          ORDER BY recheck_wall_ms, lease_key LIMIT ?2",
    )?;
    let mut rows = select.query((turn.wall().as_millis(), limit))?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let key = key_of(&row.get::<_, String>(0)?)?;
        let floor = floor_of(&key, row.get(1)?)?;
        let forgotten_at = Timestamp::from_millis(row.get(2)?);
        due.push(Recheck { key, floor, forgotten_at, due_at: Timestamp::from_millis(row.get(3)?) });
    }
    Ok(due)
}

pub(super) fn schedule_recheck(
    turn: &Turn<'_>,
    recheck: &Recheck,
    next: Option<Duration>,
) -> Result<bool, Failure> {
    let next = next.map(|wait| turn.wall().plus(wait).as_millis());
    let rows = turn
        .sql()
        .prepare_cached(
            "UPDATE lease SET recheck_wall_ms = ?4
              WHERE lease_key = ?1 AND recheck_wall_ms = ?2 AND forget_floor = ?3",
        )?
        .execute((
            recheck.key.to_string(),
            recheck.due_at.as_millis(),
            i64::try_from(recheck.floor.get()).unwrap_or(i64::MAX),
            next,
        ))?;
    Ok(rows == 1)
}

fn columns(claim: &Claim) -> (String, &str, String, i64) {
    (claim.key.to_string(), claim.replica.as_str(), claim.tenure.to_string(), claim.epoch.as_i64())
}

fn lease_row(turn: &Turn<'_>, row: &Row<'_>) -> Result<LeaseRow, Failure> {
    let key = key_of(&row.get::<_, String>(0)?)?;
    let owner = match (row.get::<_, Option<String>>(2)?, row.get::<_, Option<String>>(3)?) {
        (Some(replica), Some(tenure)) => Some(Owner {
            replica: replica.parse().map_err(|error| damaged(&key, &error))?,
            endpoint: row.get(9)?,
            tenure: tenure.parse().map_err(|error| damaged(&key, &error))?,
            remaining: turn.until(row.get(4)?),
        }),
        (None, None) => None,
        _ => return Err(damaged(&key, "it has half an owner").into()),
    };
    Ok(LeaseRow {
        epoch: epoch_of(&key, row.get(1)?)?,
        owner,
        floor: floor_of(&key, row.get(5)?)?,
        forgotten_at: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_millis),
        receipt: row.get(7)?,
        paused_at: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_millis),
        key,
    })
}
