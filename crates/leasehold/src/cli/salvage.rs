//! `leasehold salvage ...`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use leasehold_types::{LeaseKey, ReplicaId};

const EXAMPLES: &str = "\
When a replica crashes, loses a tenant or is told to abandon it, what it had written after the last published snapshot is in no
successor's ledger. It is kept on that replica's disk, beside the tenant's next ledger there, for an operator. What a crash left is
called in-place until its replica opens the tenant again.

Examples:
  leasehold salvage list acme/user-1
  leasehold salvage export acme/user-1 --name e00000007-1c0e --to lost-tail.db";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SalvageArgs {
    /// The data directory of the replicas
    #[arg(long, value_name = "DIR", env = "LEASEHOLD_DATA_DIR", default_value = ".leasehold", global = true)]
    pub(crate) data_dir: PathBuf,
    /// Only what this replica keeps
    #[arg(long, value_name = "ID", global = true)]
    pub(crate) replica: Option<ReplicaId>,
    #[command(subcommand)]
    pub(crate) verb: SalvageVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SalvageVerb {
    /// List what is kept of a tenant, newest first
    List(SalvageList),
    /// Write one of them to a new SQLite file
    Export(SalvageExport),
}

#[derive(Debug, Args)]
pub(crate) struct SalvageList {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
}

#[derive(Debug, Args)]
pub(crate) struct SalvageExport {
    /// The tenant
    #[arg(value_name = "ORG/TENANT")]
    pub(crate) key: LeaseKey,
    /// Which one; needed where there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}
