//! `leasehold token revoke`.

use leasehold_lease::TokenStore;
use leasehold_types::TokenId;
use serde_json::json;

use super::audit::Operator;
use crate::{error::CliError, output::Output};

pub(super) async fn revoke(
    store: &dyn TokenStore,
    which: &str,
    operator: &Operator,
    output: Output,
) -> Result<(), CliError> {
    let ids: Vec<TokenId> = if let Ok(id) = which.parse::<TokenId>() {
        vec![id]
    } else {
        let rows = store.tokens().await?.into_iter();
        rows.filter(|row| row.name.as_str() == which).map(|row| row.id).collect()
    };
    let mut revoked = Vec::new();
    for id in ids {
        if store.revoke_token(&id).await? {
            operator.revoked(&id);
            revoked.push(id);
        }
    }
    if revoked.is_empty() {
        return Err(CliError::NoToken { which: which.chars().take(64).collect() });
    }
    output.show(&json!({ "revoked": revoked }), |out| {
        revoked.iter().try_for_each(|id| {
            writeln!(out, "token {id} is revoked: replicas let it in nowhere once they have read the tokens anew (auth.refresh_every)")
        })
    })
}
