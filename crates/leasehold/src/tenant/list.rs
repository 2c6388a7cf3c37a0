//! An organization's tenants, all pages of them up to a bound.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::status::Status;
use crate::{
    cli::TenantList,
    client::{Call, Client, Method},
    error::CliError,
    output::Output,
};

/// The longest page that a replica gives.
const PAGE_MAX: usize = 1_000;

pub(super) async fn list(client: &Client, args: &TenantList, output: Output) -> Result<(), CliError> {
    let limit = args.limit as usize;
    let mut tenants: Vec<Value> = Vec::new();
    let mut after = args.after.as_ref().map(ToString::to_string);
    let mut has_more = true;
    let bar = output.progress().spinner("listing");
    while has_more && tenants.len() < limit {
        let mut call = Call::of_org(Method::GET, &args.org)
            .with("limit", PAGE_MAX.min(limit - tenants.len()).to_string());
        if let Some(after) = &after {
            call = call.with("after", after);
        }
        let mut page = client.document(&call).await?;
        let next = page["next"].as_str().map(str::to_owned);
        // A page that leads nowhere ends it, whatever it says.
        has_more = page["has_more"] == true && next.is_some() && next != after;
        after = next.or(after);
        if let Value::Array(found) = page["tenants"].take() {
            tenants.extend(found);
        }
    }
    drop(bar);
    let rows: Vec<Status> =
        tenants.iter().map(|tenant| Status::deserialize(tenant).unwrap_or_default()).collect();
    let next = if has_more { after } else { None };
    let document = json!({ "org": args.org, "tenants": tenants, "has_more": has_more, "next": next });
    output.show(&document, |out| {
        writeln!(out, "TENANT\tSTATE\tEPOCH\tOWNER\tPOSITION")?;
        for row in &rows {
            let (owner, position) = (row.owner.as_deref(), row.position.as_deref());
            writeln!(
                out,
                "{}\t{}\t{}\t{}\t{}",
                row.key,
                row.state,
                row.epoch,
                owner.unwrap_or("-"),
                position.unwrap_or("-")
            )?;
        }
        match &next {
            Some(next) => writeln!(out, "\nthere are more: --after {next}"),
            None => Ok(()),
        }
    })
}
