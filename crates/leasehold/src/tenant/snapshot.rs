//! Publish what is not published yet.

use leasehold_types::LeaseKey;
use serde::Deserialize;

use super::status::Published;
use crate::{
    client::{Call, Client, Method},
    error::CliError,
    output::Output,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    epoch: u64,
    published: bool,
    snapshot: Option<Published>,
}

pub(super) async fn snapshot(client: &Client, key: &LeaseKey, output: Output) -> Result<(), CliError> {
    let bar = output.progress().spinner(&format!("publishing {key}"));
    let document = client.document(&Call::of_tenant(Method::POST, key).verb("snapshot")).await?;
    drop(bar);
    let answer = Answer::deserialize(&document).unwrap_or_default();
    output.show(&document, |out| match (&answer.snapshot, answer.published) {
        (Some(snapshot), true) => {
            writeln!(
                out,
                "published snapshot {}.{}: {key} up to {}",
                answer.epoch, snapshot.number, snapshot.position
            )
        }
        (Some(snapshot), false) => {
            writeln!(
                out,
                "nothing to publish: snapshot {}.{} has all of {key}",
                answer.epoch, snapshot.number
            )
        }
        (None, _) => {
            writeln!(out, "nothing to publish: nothing was written to {key} in epoch {}", answer.epoch)
        }
    })
}
