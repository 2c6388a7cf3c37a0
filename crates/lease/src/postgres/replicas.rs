//! The replicas' rows, and the derivation key's fingerprint.

use std::time::Duration;

use leasehold_types::ReplicaId;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{
    connections::Lent,
    rows::{column, micros, span},
    statements::Statements,
};
use crate::{Announced, Announcement, LeaseError, ReplicaRow, columns::damaged};

/// The most rows that are listed (`LeaseStore::replicas`).
const REPLICAS_MAX: i64 = 10_000;
/// How often an announcement looks again at a row that came or went between two of its statements.
const LOOKS_MAX: u32 = 5;
const DERIVATION_KEY: &str = "derivation_key";

pub(super) async fn announce(
    lent: &mut Lent,
    sql: &Statements,
    announcement: &Announcement,
    alive: Duration,
    supersede: bool,
) -> Result<Announced, LeaseError> {
    let Announcement { replica, instance, endpoint, draining, open_tenants } = announcement;
    let action = format!("announce {replica}");
    let (name, alive) = (replica.as_str(), micros(alive));
    let open_tenants = i64::try_from(*open_tenants).unwrap_or(i64::MAX);
    let mut parameters = vec![
        (&name as _, Type::TEXT),
        (instance as _, Type::UUID),
        (endpoint as _, Type::TEXT),
        (draining as _, Type::BOOL),
        (&open_tenants as _, Type::INT8),
    ];
    let row = parameters.clone();
    parameters.extend([(&supersede as _, Type::BOOL), (&alive as _, Type::INT8)]);
    for _ in 0..LOOKS_MAX {
        if !lent.change(&action, &sql.announce, &parameters).await?.is_empty() {
            return Ok(Announced::Accepted);
        }
        let other = lent.read(&action, &sql.heard_of, &[(&name, Type::TEXT)]).await?;
        if let Some(other) = other.first() {
            return Ok(Announced::Taken { endpoint: column(other, 0)?, seen_ago: span(column(other, 1)?) });
        }
        if !lent.change(&action, &sql.introduce, &row).await?.is_empty() {
            return Ok(Announced::Accepted);
        }
    }
    let detail = format!("its row came and went {LOOKS_MAX} times meanwhile");
    Err(LeaseError::Unavailable { action, detail })
}

pub(super) async fn retire(
    lent: &mut Lent,
    sql: &Statements,
    replica: &ReplicaId,
    instance: Uuid,
) -> Result<(), LeaseError> {
    let name = replica.as_str();
    let parameters = [(&name as _, Type::TEXT), (&instance as _, Type::UUID)];
    lent.change(&format!("retire {replica}"), &sql.retire, &parameters).await.map(|_| ())
}

pub(super) async fn list(lent: &mut Lent, sql: &Statements) -> Result<Vec<ReplicaRow>, LeaseError> {
    let rows = lent.read("list replicas", &sql.replicas, &[(&REPLICAS_MAX, Type::INT8)]).await?;
    rows.iter()
        .map(|row| {
            let id: &str = column(row, 0)?;
            let announcement = Announcement {
                replica: id.parse().map_err(|error| damaged(&format!("the replica {id}"), &error))?,
                instance: column(row, 1)?,
                endpoint: column(row, 2)?,
                draining: column(row, 3)?,
                open_tenants: u64::try_from(column::<i64>(row, 4)?).unwrap_or(0),
            };
            Ok(ReplicaRow { announcement, seen_ago: span(column(row, 5)?) })
        })
        .collect()
}

/// Read first: a refused insert would cost a commit at every start.
pub(super) async fn bind_derivation_key(
    lent: &mut Lent,
    sql: &Statements,
    fingerprint: &str,
) -> Result<String, LeaseError> {
    let action = "bind the derivation key";
    if let Some(kept) = setting(lent, sql, action).await? {
        return Ok(kept);
    }
    let parameters = [(&DERIVATION_KEY as _, Type::TEXT), (&fingerprint as _, Type::TEXT)];
    lent.change(action, &sql.keep_setting, &parameters).await?;
    setting(lent, sql, action).await?.ok_or_else(|| LeaseError::Unavailable {
        action: action.into(),
        detail: "what was stored is not there".into(),
    })
}

async fn setting(lent: &mut Lent, sql: &Statements, action: &str) -> Result<Option<String>, LeaseError> {
    let rows = lent.read(action, &sql.setting, &[(&DERIVATION_KEY, Type::TEXT)]).await?;
    rows.first().map(|row| column(row, 0)).transpose()
}
