//! The replicas' rows, and the derivation key's fingerprint.

use std::time::Duration;

use leasehold_types::ReplicaId;
use rusqlite::{OptionalExtension as _, named_params};
use uuid::Uuid;

use super::turn::{Failure, Turn};
use crate::{Announced, Announcement, LeaseError, ReplicaRow};

/// The most rows that are listed (`LeaseStore::replicas`).
const REPLICAS_MAX: u32 = 10_000;

pub(super) fn announce(
    turn: &Turn<'_>,
    announcement: &Announcement,
    alive: Duration,
    supersede: bool,
) -> Result<Announced, Failure> {
    let Announcement { replica, instance, endpoint, draining, open_tenants } = announcement;
    let open_tenants = i64::try_from(*open_tenants).unwrap_or(i64::MAX);
    let alive_ms = i64::try_from(alive.as_millis()).unwrap_or(i64::MAX);
    let rows = turn
        .sql()
        .prepare_cached(
            "UPDATE replica
                SET instance = :instance, endpoint = :endpoint, draining = :draining,
                    open_tenants = :open_tenants, seen_boot_ms = :now
              WHERE replica_id = :replica AND (instance = :instance OR :supersede OR seen_boot_ms <= :dead)",
        )?
        .execute(named_params! {
            ":replica": replica.as_str(), ":instance": instance.to_string(), ":endpoint": endpoint,
            ":draining": draining, ":open_tenants": open_tenants, ":now": turn.now_ms(),
            ":supersede": supersede, ":dead": turn.now_ms().saturating_sub(alive_ms),
        })?;
    if rows == 1 {
        return Ok(Announced::Accepted);
    }
    let other = turn
        .sql()
        .prepare_cached("SELECT endpoint, seen_boot_ms FROM replica WHERE replica_id = ?1")?
        .query_row([replica.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((endpoint, seen)) = other {
        return Ok(Announced::Taken { endpoint, seen_ago: turn.since(seen) });
    }
    turn.sql()
        .prepare_cached(
            "INSERT INTO replica (replica_id, instance, endpoint, draining, open_tenants, seen_boot_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((replica.as_str(), instance.to_string(), endpoint, draining, open_tenants, turn.now_ms()))?;
    Ok(Announced::Accepted)
}

pub(super) fn retire(turn: &Turn<'_>, replica: &ReplicaId, instance: Uuid) -> Result<(), Failure> {
    turn.sql()
        .prepare_cached("DELETE FROM replica WHERE replica_id = ?1 AND instance = ?2")?
        .execute((replica.as_str(), instance.to_string()))?;
    Ok(())
}

pub(super) fn list(turn: &Turn<'_>) -> Result<Vec<ReplicaRow>, Failure> {
    let mut select = turn.sql().prepare_cached(
        "SELECT replica_id, instance, endpoint, draining, open_tenants, seen_boot_ms FROM replica
          ORDER BY replica_id LIMIT ?1",
    )?;
    let mut rows = select.query([REPLICAS_MAX])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let damaged = |detail: String| LeaseError::Damaged { key: format!("the replica {id}"), detail };
        let announcement = Announcement {
            replica: id.parse().map_err(|error| damaged(format!("{error}")))?,
            instance: Uuid::try_parse(&row.get::<_, String>(1)?)
                .map_err(|error| damaged(error.to_string()))?,
            endpoint: row.get(2)?,
            draining: row.get(3)?,
            open_tenants: u64::try_from(row.get::<_, i64>(4)?).unwrap_or(0),
        };
        found.push(ReplicaRow { announcement, seen_ago: turn.since(row.get(5)?) });
    }
    Ok(found)
}

pub(super) fn bind_derivation_key(turn: &Turn<'_>, fingerprint: &str) -> Result<String, Failure> {
    turn.sql()
        .prepare_cached(
            "INSERT INTO meta (name, value) VALUES ('derivation_key', ?1) ON CONFLICT (name) DO NOTHING",
        )?
        .execute([fingerprint])?;
    let kept = turn
        .sql()
        .prepare_cached("SELECT value FROM meta WHERE name = 'derivation_key'")?
        .query_row([], |row| row.get(0))?;
    Ok(kept)
}
