//! `leasehold probe ...`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use crate::client::Endpoint;

const EXAMPLES: &str = "\
For what can only start a program, such as a container's health check: the image has no shell and no curl.

Examples:
  leasehold probe alive      whether the process answers; what restarts it asks this
  leasehold probe ready      whether it takes tenants; what sends clients to it asks this
  leasehold probe ready --endpoint http://127.0.0.1:7401
  leasehold probe alive --endpoint https://ledger-0.example.com:7400 --ca-file ca.crt

A replica that is not ready is not to be restarted: it may be cut off from the database, and keeps what it holds.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProbeArgs {
    /// What to ask
    #[arg(value_enum)]
    pub(crate) what: Probed,
    #[arg(
        long,
        value_name = "URL",
        env = "LEASEHOLD_URL",
        hide_env = true,
        help = "The replica to ask [default: loopback, at the port of LEASEHOLD_LISTEN, else 7400, by https with LEASEHOLD_TLS__CERT_FILE] [env: LEASEHOLD_URL]"
    )]
    pub(crate) endpoint: Option<Endpoint>,
    /// The authorities (PEM) by which a replica is known that is asked by https [default: this machine's; of one beside this process, anybody's]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CA_FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// How long it may take to answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,
}

/// What a probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Probed {
    /// Whether the process is there
    Alive,
    /// Whether the replica takes tenants
    Ready,
}
