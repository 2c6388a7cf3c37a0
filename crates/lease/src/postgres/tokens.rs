//! The API tokens' rows.

use leasehold_types::{Timestamp, TokenHash, TokenId};
use tokio_postgres::{Row, types::Type};

use super::{
    connections::Lent,
    rows::{column, micros},
    statements::Statements,
};
use crate::{LeaseError, NewToken, TOKENS_MAX, TokenAdded, TokenRow, columns::damaged};

/// How often adding looks again for a place that came free, or was taken, between two of its statements.
const LOOKS_MAX: u32 = 5;

pub(super) async fn add(
    lent: &mut Lent,
    sql: &Statements,
    token: &NewToken,
) -> Result<TokenAdded, LeaseError> {
    let action = format!("add the token {}", token.id);
    lent.change(&action, &sql.drop_ended_tokens, &[]).await?;
    let (name, id, hash) = (token.name.as_str(), token.id.as_str(), &token.hash.as_bytes()[..]);
    let (organizations, scopes) = (token.organizations.to_string(), token.scopes.to_string());
    let (good_for, most) = (micros(token.good_for), i64::from(TOKENS_MAX));
    let parameters = [
        (&name as _, Type::TEXT),
        (&id as _, Type::TEXT),
        (&hash as _, Type::BYTEA),
        (&organizations as _, Type::TEXT),
        (&scopes as _, Type::TEXT),
        (&good_for as _, Type::INT8),
        (&most as _, Type::INT8),
    ];
    for _ in 0..LOOKS_MAX {
        if let Some(row) = lent.change(&action, &sql.add_token, &parameters).await?.first() {
            return Ok(TokenAdded::Added(Timestamp::from_millis(column(row, 0)?)));
        }
        if let Some(known) = token.beside(&list(lent, sql).await?) {
            return Ok(known);
        }
    }
    let detail = format!("others added and revoked tokens of its name {LOOKS_MAX} times meanwhile");
    Err(LeaseError::Unavailable { action, detail })
}

pub(super) async fn list(lent: &mut Lent, sql: &Statements) -> Result<Vec<TokenRow>, LeaseError> {
    let most = i64::from(TOKENS_MAX);
    let rows = lent.read("list the tokens", &sql.tokens, &[(&most, Type::INT8)]).await?;
    rows.iter().map(row_of).collect()
}

fn row_of(row: &Row) -> Result<TokenRow, LeaseError> {
    let id: &str = column(row, 0)?;
    let broken = |detail: &dyn ToString| damaged(&format!("the token {id}"), &detail.to_string());
    let hash: &[u8] = column(row, 2)?;
    Ok(TokenRow {
        id: id.parse().map_err(|error| broken(&error))?,
        name: column::<&str>(row, 1)?.parse().map_err(|error| broken(&error))?,
        hash: TokenHash::new(hash.try_into().map_err(|error| broken(&error))?),
        organizations: column::<&str>(row, 3)?.parse().map_err(|error| broken(&error))?,
        scopes: column::<&str>(row, 4)?.parse().map_err(|error| broken(&error))?,
        created_at: Timestamp::from_millis(column(row, 5)?),
        expires_at: Timestamp::from_millis(column(row, 6)?),
    })
}

pub(super) async fn revoke(lent: &mut Lent, sql: &Statements, id: &TokenId) -> Result<bool, LeaseError> {
    let text = id.as_str();
    let gone =
        lent.change(&format!("revoke the token {id}"), &sql.revoke_token, &[(&text, Type::TEXT)]).await?;
    Ok(!gone.is_empty())
}
