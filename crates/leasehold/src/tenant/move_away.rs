//! A tenant leaves its replica: with everything published, or at once.

use leasehold_types::LeaseKey;
use serde::Deserialize as _;
use serde_json::json;

use super::status::Status;
use crate::{
    cli::TenantHandoff,
    client::{Call, Client, Method},
    error::CliError,
    output::Output,
};

pub(super) async fn handoff(client: &Client, args: &TenantHandoff, output: Output) -> Result<(), CliError> {
    let TenantHandoff { key, to } = args;
    let bar = output.progress().spinner(&format!("handing {key} off"));
    let mut call = Call::of_tenant(Method::POST, key).verb("handoff");
    if let Some(to) = to {
        call = call.json(json!({ "to": to }));
    }
    let document = client.document(&call).await?;
    drop(bar);
    let status = Status::deserialize(&document).unwrap_or_default();
    output.show(&document, |out| match status.state.as_str() {
        "released" => {
            writeln!(out, "{key} is handed off: nobody has it open, epoch {} is published", status.epoch)
        }
        state => match (to, &status.owner) {
            (Some(to), Some(owner)) if owner == to.as_str() => {
                writeln!(out, "{key} is handed over: {to} has it open, in epoch {}", status.epoch)
            }
            _ => writeln!(out, "{key} is handed off and {state} again, in epoch {}", status.epoch),
        },
    })
}

pub(super) async fn abandon(client: &Client, key: &LeaseKey, output: Output) -> Result<(), CliError> {
    let document =
        client.document(&Call::of_tenant(Method::POST, key).verb("abandon").follows_state()).await?;
    let status = Status::deserialize(&document).unwrap_or_default();
    output.show(&document, |out| match status.state.as_str() {
        "released" => writeln!(
            out,
            "nobody has {key} open: what epoch {} had not published is kept on its replica (leasehold salvage list {key})",
            status.epoch
        ),
        state => writeln!(out, "{key} was abandoned and is {state} again, in epoch {}", status.epoch),
    })
}
