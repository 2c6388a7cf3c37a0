//! `leasehold tenant ...`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use leasehold_types::{Epoch, LeaseKey, OrgSlug, ReplicaId, TenantId};

use crate::client::Endpoint;

const EXAMPLES: &str = "\
Examples:
  leasehold tenant status acme/user-1
  leasehold tenant list acme --json
  leasehold tenant handoff acme/user-1 --endpoint http://127.0.0.1:7401
  leasehold tenant handoff acme/user-1 --to ledger-1
  leasehold tenant pause acme/user-1
  leasehold tenant export acme/user-1 --to user-1.db
  leasehold tenant forget acme/user-1 --dry-run

What another replica holds is asked for there, once.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TenantArgs {
    /// The replica to ask
    #[arg(
        long,
        value_name = "URL",
        env = "LEASEHOLD_URL",
        default_value = "http://127.0.0.1:7400",
        global = true
    )]
    pub(crate) endpoint: Endpoint,
    /// The file of the token that the replica is shown, one line
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_TOKEN_FILE", global = true)]
    pub(crate) token_file: Option<PathBuf>,
    /// The authorities (PEM) by which a replica is known that is asked by https [default: this machine's]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CA_FILE", global = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// How long to wait for an answer, and between two pieces of one
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        value_parser = humantime::parse_duration,
        global = true
    )]
    pub(crate) timeout: Duration,
    #[command(subcommand)]
    pub(crate) verb: TenantVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantVerb {
    /// Show who serves a tenant, and how it stands there
    Status(TenantName),
    /// List an organization's tenants, the forgotten ones too
    List(TenantList),
    /// Publish what is not published yet
    Snapshot(TenantName),
    /// Publish what is not published yet and give the lease back; the next call opens it, on any replica, or the one that is named has it open
    Handoff(TenantHandoff),
    /// Give the lease back at once: what is not published stays on that replica's disk only
    Abandon(TenantName),
    /// Hand a tenant off and hold it still: no replica opens it until it is resumed
    Pause(TenantName),
    /// Let a paused tenant be opened again
    Resume(TenantName),
    /// Delete everything of a tenant, for ever, and print the receipt
    Forget(TenantForget),
    /// Write a tenant's ledger to a SQLite file and verify its digest
    Export(TenantExport),
}

#[derive(Debug, Args)]
pub(crate) struct TenantName {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
}

#[derive(Debug, Args)]
pub(crate) struct TenantHandoff {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
    /// The replica that is to have it open
    #[arg(long, value_name = "REPLICA")]
    pub(crate) to: Option<ReplicaId>,
}

#[derive(Debug, Args)]
pub(crate) struct TenantList {
    /// The organization
    #[arg(value_name = "ORG")]
    pub(crate) org: OrgSlug,
    /// Only those after this tenant id
    #[arg(long, value_name = "TENANT")]
    pub(crate) after: Option<TenantId>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct TenantForget {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
    /// Do not ask: forget it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Say what would go, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Only while this is the tenant's epoch
    #[arg(long, value_name = "EPOCH", value_parser = epoch)]
    pub(crate) if_epoch: Option<Epoch>,
}

#[derive(Debug, Args)]
pub(crate) struct TenantExport {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

fn epoch(text: &str) -> Result<Epoch, String> {
    let number: u64 = text.parse().map_err(|_| "not a whole number".to_owned())?;
    Epoch::new(number).map_err(|error| error.to_string())
}
