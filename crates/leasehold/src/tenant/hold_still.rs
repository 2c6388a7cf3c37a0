//! A tenant is held still, and let go on.

use leasehold_types::LeaseKey;

use crate::{
    client::{Call, Client, Method},
    error::CliError,
    output::Output,
};

pub(super) async fn pause(client: &Client, key: &LeaseKey, output: Output) -> Result<(), CliError> {
    let bar = output.progress().spinner(&format!("handing {key} off"));
    let document = client.document(&Call::of_tenant(Method::POST, key).verb("pause")).await?;
    drop(bar);
    output.show(&document, |out| {
        writeln!(out, "{key} is paused: no replica opens it before `leasehold tenant resume {key}`")
    })
}

pub(super) async fn resume(client: &Client, key: &LeaseKey, output: Output) -> Result<(), CliError> {
    let call = Call::of_tenant(Method::POST, key).verb("resume").follows_state();
    let document = client.document(&call).await?;
    output.show(&document, |out| writeln!(out, "{key} is not paused: the next call opens it"))
}
