//! The verbs, and what holds for all of them.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, error::ErrorKind};

use super::{
    DoctorArgs, MigrateArgs, ProbeArgs, SalvageArgs, ServeArgs, SnapshotArgs, TenantArgs, TokenArgs,
};
use crate::{error::CliError, exit::Exit, output::Output};

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  failed; for doctor: something that it looked at is wrong
  2  the command line or the configuration cannot be used
  3  there is no such tenant, snapshot or salvage, or the tenant was forgotten
  4  something that is stored is damaged, or newer than this build reads
  5  not now: another replica holds the tenant, it is moving, or something cannot be reached; try again
  6  the replica went and could not publish everything that it had acknowledged: it names the tenants

With --json the standard output is one JSON document, also where the verb fails:
  {\"error\":{\"code\":\"tenant_unknown\",\"message\":\"...\"}}";

/// A SQLite ledger for every tenant, on a fleet of replicas.

#[derive(Debug, Parser)]
#[command(name = "leasehold", version, about, after_help = AFTER_HELP, max_term_width = 110)]
pub(crate) struct Cli {
    /// Print one JSON document for programs instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a replica
    Serve(ServeArgs),
    /// Make the lease tables and the container, or bring them to this build's version
    Migrate(MigrateArgs),
    /// Look at the database, the container and the disk that a configuration names, before it is trusted
    Doctor(DoctorArgs),
    /// Ask a replica whether it is alive or ready, for a health check that can only start a program
    Probe(ProbeArgs),
    /// Look after tenants through a running replica
    Tenant(TenantArgs),
    /// Make, list and revoke the tokens by which services are known
    Token(TokenArgs),
    /// List, verify and restore the snapshots in the store; no replica needs to run
    Snapshot(SnapshotArgs),
    /// List and export what crashed or abandoned ledgers left on this disk
    Salvage(SalvageArgs),
}

/// Reads the process's arguments. The error is what is left to do: exit, everything has been said.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let command = Cli::command().mut_subcommand("serve", super::serve::with_keys);
    let parsed = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            // Nobody is left to tell where the terminal has gone.
            let _ = error.print();
            return Exit::Done.into();
        }
        // What is wrong may be the very argument that says how to put it.
        if std::env::args_os().any(|argument| argument == "--json") {
            Output::new(true).failed(&CliError::Usage(error));
        } else {
            let _ = error.print();
        }
        Exit::Usage.into()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use leasehold_fuzz::{Format, Read, assert_reached};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_are_a_command_or_a_usage_error_whatever_the_bytes() {
        let read = |bytes: &[u8]| -> Read {
            let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
            let words = text.split('\n').filter(|word| !word.is_empty());
            match Cli::try_parse_from(["leasehold"].into_iter().chain(words)) {
                Ok(_) => Ok(bytes.to_vec()),
                // It shows what was typed to who typed it.
                Err(error) => Err(error.to_string().chars().take(1_000).collect()),
            }
        };
        let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"));
        assert_reached(corpus, &["arguments"]);
        Format { name: "arguments", read: &read, is_same: &|input, written| input == written }.hold(corpus);
    }

    #[test]
    fn global_arguments_stand_anywhere() {
        for line in [
            "leasehold --json tenant --endpoint http://b:1 status acme/u",
            "leasehold tenant status acme/u --endpoint http://b:1 --json",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert!(cli.json);
            let Command::Tenant(args) = cli.command else { panic!("{line}") };
            assert_eq!(args.endpoint.to_string(), "http://b:1");
        }
    }

    #[test]
    fn what_is_no_tenant_is_refused_before_anything_is_done() {
        for key in ["acme", "acme/../u", "Acme/u", "acme/u/v", "/u"] {
            assert!(Cli::try_parse_from(["leasehold", "tenant", "forget", key]).is_err(), "{key}");
        }
    }
}
