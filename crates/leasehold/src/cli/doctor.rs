//! `leasehold doctor`.

use std::{path::PathBuf, time::Duration};

use clap::Args;

const EXAMPLES: &str = "\
Asks the database, the container and the disk what they are, puts and removes small objects of its own, and says what is wrong and what
to do. Nothing of any tenant is read or changed. Each check has a name that stays; `docs/doctor.md` lists them.

Examples:
  leasehold doctor --config leasehold.toml
  leasehold doctor --config leasehold.toml --strict --json
  leasehold doctor --config leasehold.toml --check-config-only      no network and no disk: for a pipeline";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// The configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "DIR",
        help = "The directory of everything that is kept [default: .leasehold] [env: LEASEHOLD_DATA_DIR]"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// Let warnings fail too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Only load and check the configuration: no network is touched, and no file but those that it is made of
    #[arg(long)]
    pub(crate) check_config_only: bool,
    /// How long each question may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) limit: Duration,
}
