//! `leasehold migrate`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  leasehold migrate --config leasehold.toml --dry-run     see what is to do; nothing is changed
  leasehold migrate --config leasehold.toml
  LEASEHOLD_POSTGRES__URL_FILE=/run/owner-url leasehold migrate --config leasehold.toml

It needs the role that owns the schema; `leasehold serve` needs DML only. Twice is as good as once, and beside replicas that run.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MigrateArgs {
    /// The configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Do it all in a transaction that is taken back, and say what is left to do
    #[arg(long)]
    pub(crate) dry_run: bool,
}
