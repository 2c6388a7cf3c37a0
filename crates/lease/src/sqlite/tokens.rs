//! The API tokens' rows.

use leasehold_types::{Timestamp, TokenHash, TokenId};
use rusqlite::{Row, named_params};

use super::turn::{Failure, Turn};
use crate::{NewToken, TOKENS_MAX, TokenAdded, TokenRow, columns::damaged};

pub(super) fn add(turn: &Turn<'_>, token: &NewToken) -> Result<TokenAdded, Failure> {
    let now = turn.wall();
    turn.sql().execute("DELETE FROM token WHERE expires_wall_ms <= ?1", [now.as_millis()])?;
    if let Some(known) = token.beside(&list(turn)?) {
        return Ok(known);
    }
    let expires_at = now.plus(token.good_for);
    turn.sql()
        .prepare_cached(
            "INSERT INTO token (name, slot, token_id, hash, organizations, scopes, created_wall_ms, expires_wall_ms)
             VALUES (:name, (SELECT CASE WHEN EXISTS (SELECT 1 FROM token WHERE name = :name AND slot = 1) THEN 2 ELSE 1 END),
                     :id, :hash, :organizations, :scopes, :now, :expires)",
        )?
        .execute(named_params! {
            ":name": token.name.as_str(), ":id": token.id.as_str(), ":hash": token.hash.as_bytes(),
            ":organizations": token.organizations.to_string(), ":scopes": token.scopes.to_string(),
            ":now": now.as_millis(), ":expires": expires_at.as_millis(),
        })?;
    Ok(TokenAdded::Added(expires_at))
}

pub(super) fn list(turn: &Turn<'_>) -> Result<Vec<TokenRow>, Failure> {
    let mut select = turn.sql().prepare_cached(
        "SELECT token_id, name, hash, organizations, scopes, created_wall_ms, expires_wall_ms FROM token
          WHERE expires_wall_ms > ?1 ORDER BY name, slot LIMIT ?2",
    )?;
    let mut rows = select.query((turn.wall().as_millis(), TOKENS_MAX))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(row_of(row)?);
    }
    Ok(found)
}

fn row_of(row: &Row<'_>) -> Result<TokenRow, Failure> {
    let id: String = row.get(0)?;
    let broken = |detail: &dyn ToString| damaged(&format!("the token {id}"), &detail.to_string());
    Ok(TokenRow {
        id: id.parse().map_err(|error| broken(&error))?,
        name: row.get::<_, String>(1)?.parse().map_err(|error| broken(&error))?,
        hash: TokenHash::new(row.get(2)?),
        organizations: row.get::<_, String>(3)?.parse().map_err(|error| broken(&error))?,
        scopes: row.get::<_, String>(4)?.parse().map_err(|error| broken(&error))?,
        created_at: Timestamp::from_millis(row.get(5)?),
        expires_at: Timestamp::from_millis(row.get(6)?),
    })
}

pub(super) fn revoke(turn: &Turn<'_>, id: &TokenId) -> Result<bool, Failure> {
    let gone = turn.sql().prepare_cached("DELETE FROM token WHERE token_id = ?1")?.execute([id.as_str()])?;
    Ok(gone > 0)
}
