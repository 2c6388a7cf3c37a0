//! `leasehold serve`.

use std::{fmt::Write as _, net::SocketAddr, path::PathBuf};

use clap::{Args, builder::FalseyValueParser};
use leasehold_server::CONFIG_KEYS;
use leasehold_types::ReplicaId;

const EXAMPLES: &str = "\
Examples:
  leasehold serve --dev                                  try it: nothing to set up, loopback only
  leasehold serve --dev --data-dir /tmp/l --listen 127.0.0.1:0
  leasehold serve --config leasehold.toml --replica a

SIGTERM or Ctrl-C hands every tenant off and ends; a second one gives every lease back at once.
`leasehold serve --help` lists every key of the configuration.";

/// What `serve` is told on the command line. It goes before the environment, which goes before the file.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Development: no authentication, loopback only; an id and a port are chosen where none is named
    #[arg(long, env = "LEASEHOLD_DEV", value_parser = FalseyValueParser::new())]
    pub(crate) dev: bool,
    /// The configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "DIR",
        help = "The directory of everything that is kept [default: .leasehold] [env: LEASEHOLD_DATA_DIR]"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    #[arg(
        long,
        value_name = "ADDR",
        help = "The address to listen on [default: 127.0.0.1:7400] [env: LEASEHOLD_LISTEN]"
    )]
    pub(crate) listen: Option<SocketAddr>,
    #[arg(
        long,
        value_name = "ID",
        help = "This replica's id, its own in the fleet [env: LEASEHOLD_REPLICA]"
    )]
    pub(crate) replica: Option<ReplicaId>,
}

/// The verb with every key of the configuration in its long help.
pub(crate) fn with_keys(command: clap::Command) -> clap::Command {
    let width = CONFIG_KEYS.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let mut text = format!(
        "{EXAMPLES}\n\nKeys of the configuration file, each also an environment variable (LEASEHOLD_LIMITS__ROWS_MAX):\n"
    );
    for (key, meaning) in CONFIG_KEYS {
        // Writing into a String does not fail.
        let _ = writeln!(text, "  {key:width$}  {meaning}");
    }
    command.after_long_help(text)
}
