//! `leasehold snapshot ...`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use leasehold_types::LeaseKey;

use super::Which;

const EXAMPLES: &str = "\
Examples:
  leasehold snapshot list acme/user-1
  leasehold snapshot list acme/user-1 --config leasehold.toml
  leasehold snapshot verify acme/user-1 --data-dir /var/lib/leasehold
  leasehold snapshot restore acme/user-1 --at latest --to user-1.db
  leasehold snapshot restore acme/user-1 --at 7.9 --to user-1.db
  leasehold snapshot restore acme/user-1 --at 2026-09-21T14:00:00Z --to user-1.db";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SnapshotArgs {
    /// The replicas' configuration file (TOML): it says where the store is
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "DIR",
        global = true,
        help = "The data directory of replicas that keep their store in it, whatever the configuration says [default: .leasehold] \
                [env: LEASEHOLD_DATA_DIR]"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) verb: SnapshotVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotVerb {
    /// List a tenant's snapshots, newest first
    List(SnapshotList),
    /// Fetch every snapshot of a tenant and check it: digests, sizes, the database itself
    Verify(SnapshotVerify),
    /// Write a snapshot to a new file; nothing in the store is changed
    Restore(SnapshotRestore),
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotList {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotVerify {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotRestore {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "latest",
        help = "Which one: latest, <number>, <epoch>.<number>, a position <epoch>-<seq>, or the newest at an RFC 3339 time"
    )]
    pub(crate) at: Which,
    /// The file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}
