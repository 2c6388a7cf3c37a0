//! Who serves a tenant, and how it stands there.

use std::io::{self, Write};

use indicatif::HumanBytes;
use leasehold_types::LeaseKey;
use serde::Deserialize;

use crate::{
    client::{Call, Client, Method},
    error::CliError,
    output::Output,
};

/// What people are shown of a status; programs get all that the replica sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) key: String,
    pub(super) state: String,
    pub(super) epoch: u64,
    floor: u64,
    pub(super) owner: Option<String>,
    endpoint: Option<String>,
    phase: Option<String>,
    pub(super) position: Option<String>,
    published: Option<Published>,
    pub(super) unflushed_bytes: Option<u64>,
    ledger_bytes: Option<u64>,
    in_flight: Option<u64>,
    paused: bool,
}

/// A published snapshot in an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Published {
    pub(super) number: u64,
    pub(super) position: String,
    pub(super) at: String,
}

pub(super) async fn status(client: &Client, key: &LeaseKey, output: Output) -> Result<(), CliError> {
    let document = client.document(&Call::of_tenant(Method::GET, key).follows_state()).await?;
    let status = Status::deserialize(&document).unwrap_or_default();
    output.show(&document, |out| write(&status, out))
}

pub(super) fn write(status: &Status, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "tenant\t{}", status.key)?;
    writeln!(out, "state\t{}{}", status.state, if status.paused { ", paused" } else { "" })?;
    writeln!(out, "epoch\t{}", status.epoch)?;
    if status.floor > 0 {
        writeln!(out, "forgotten up to\tepoch {}", status.floor)?;
    }
    if let Some(owner) = &status.owner {
        match &status.endpoint {
            Some(endpoint) => writeln!(out, "owner\t{owner} at {endpoint}")?,
            None => writeln!(out, "owner\t{owner}")?,
        }
    }
    if let Some(phase) = &status.phase {
        writeln!(out, "phase\t{phase}")?;
    }
    if let Some(position) = &status.position {
        writeln!(out, "position\t{position}")?;
        match &status.published {
            Some(snapshot) => {
                let Published { number, position, at } = snapshot;
                writeln!(out, "published\t{position} by snapshot {}.{number}, {at}", status.epoch)?;
            }
            None => writeln!(out, "published\tnothing in this epoch")?,
        }
    }
    if let Some(bytes) = status.unflushed_bytes {
        writeln!(out, "unpublished\t{}", HumanBytes(bytes))?;
    }
    if let Some(bytes) = status.ledger_bytes {
        writeln!(out, "ledger\t{}", HumanBytes(bytes))?;
    }
    if let Some(in_flight) = status.in_flight {
        writeln!(out, "in flight\t{in_flight}")?;
    }
    Ok(())
}
