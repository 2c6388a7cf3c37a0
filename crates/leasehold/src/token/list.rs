//! `leasehold token list`.

use leasehold_lease::TokenStore;
use serde_json::{Value, json};

use crate::{error::CliError, output::Output};

pub(super) async fn list(store: &dyn TokenStore, output: Output) -> Result<(), CliError> {
    let rows = store.tokens().await?;
    let documents: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "id": row.id, "name": row.name, "organizations": row.organizations.to_string(),
                "scopes": row.scopes, "created_at": row.created_at, "expires_at": row.expires_at,
            })
        })
        .collect();
    output.show(&json!({ "tokens": documents }), |out| {
        if rows.is_empty() {
            return writeln!(out, "no token is live: `leasehold token create` makes one");
        }
        writeln!(out, "NAME\tID\tORGANIZATIONS\tSCOPES\tEXPIRES")?;
        rows.iter().try_for_each(|row| {
            writeln!(
                out,
                "{}\t{}\t{}\t{}\t{}",
                row.name, row.id, row.organizations, row.scopes, row.expires_at
            )
        })
    })
}
