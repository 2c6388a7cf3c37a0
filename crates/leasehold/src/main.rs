//! The one binary: `leasehold serve` is a replica, `migrate` makes what it serves on, the other verbs look after tenants, their
//! snapshots and what a crash left.

mod cli;
mod client;
mod data_dir;
mod descriptors;
mod doctor;
mod environment;
mod error;
mod exit;
mod migrate;
mod new_file;
mod output;
mod probe;
mod problem;
mod progress;
mod run;
mod salvage;
mod serve;
mod signals;
mod snapshot;
mod tenant;
mod token;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse() {
        Ok(cli) => run::run(cli),
        Err(exit) => exit,
    }
}
