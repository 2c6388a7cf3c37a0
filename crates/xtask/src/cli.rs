//! The verbs and their options.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::{
    XtaskError, bench, beside, chart, ci, contract, described,
    fleet::{self, Launcher},
    fuzz, model, sbom, soak, suites,
    supply::{self, Advisories},
    workspace::Workspace,
};

/// Starts what the suites need and runs them.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, about)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs every suite: the documentation's examples, all tests, then `described`; says how many contract rows ran for each pair of backends. With
    /// `--fleet` or `--compose`, the suites of a whole fleet instead: rollouts, kills and partitions under load, in real time
    Test {
        /// The suites of a fleet, of plain processes
        #[arg(long, group = "launcher")]
        fleet: bool,
        /// The same suites, of the containers of integration/compose.yaml
        #[arg(long, group = "launcher")]
        compose: bool,
        /// Writes what the fleet's suites saw into the table of benches/README.md
        #[arg(long, requires = "launcher")]
        report: bool,
        /// The commit whose build is the one before this one, in the suite where both are in a fleet; else the newest release, else the commit before
        /// this one
        #[arg(long, value_name = "COMMIT", requires = "launcher")]
        previous: Option<String>,
        /// Passed on to the test runner: `cargo xtask test -- contract::` runs what has that in its path
        #[arg(last = true, value_name = "FILTER")]
        filters: Vec<String>,
    },
    /// Runs the contract's rows alone
    Contract {
        /// How many times in a row
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        repeat: u32,
        /// Keeps every core busy meanwhile
        #[arg(long)]
        busy: bool,
        /// Only this pair of backends, such as `embedded`
        #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(crate::rows::PAIRS))]
        pair: Option<String>,
    },
    /// Renders the Helm chart by Helm's own engine over a table of values, and holds what it renders to Kubernetes' schemas and
    /// to the binary
    Chart {
        /// Only the tests that pytest selects by this: `cargo xtask chart refused`
        filter: Option<String>,
    },
    /// Holds a replica to openapi.json by requests that schemathesis makes up from it; `test` does that too
    Described,
    /// Holds the dependencies to deny.toml
    Supply {
        /// Fails where the database of advisories cannot be fetched, and does not only say so
        #[arg(long)]
        advisories: bool,
    },
    /// Writes the binary's bill of materials, as `CycloneDX` JSON
    Sbom {
        /// The file, else `sbom/leasehold.cdx.json` below the target directory
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Everything that a change must pass: format, layers, house rules, `supply`, lints, documentation, `chart`, `test --fleet`, `test --compose`,
    /// then `test`
    Ci,
    /// Runs the benches beside the servers that they need, and writes their tables into benches/README.md
    Bench {
        /// Only these, such as `http images`
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Uses and disturbs a fleet by a seed, one round after the other, until something is found or time is up
    Soak(soak::Plan),
    /// Makes up more for each format that is read, and from other seeds, than every run of the suites does: `cargo xtask fuzz --for 10m`
    Fuzz(fuzz::Plan),
    /// Starts the servers that the suites need, runs a command that is told their addresses, and stops them:
    /// `cargo xtask services -- cargo nextest run --package leasehold-lease`
    Services {
        /// The command
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Explores the store's protocol and a tenure's transitions exhaustively, over the product's own plans (docs/model.md):
    /// `cargo xtask model --deep`
    Model {
        /// Passed on: `cargo xtask model -- --help` says what there is
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        options: Vec<String>,
    },
    /// Checks the layers, the house rules and the documents' links; runs no test
    Rules,
}

/// Does what was asked for.
pub fn run(cli: &Cli) -> Result<(), XtaskError> {
    let workspace = Workspace::find()?;
    match &cli.verb {
        Verb::Test { fleet: false, compose: false, filters, .. } => suites::run(&workspace, filters),
        Verb::Test { fleet, filters, report, previous, .. } => {
            let launcher = if *fleet { Launcher::Processes } else { Launcher::Compose };
            let plan = fleet::Plan { filters, report: *report, previous: previous.as_deref() };
            fleet::run(&workspace, launcher, &plan)
        }
        Verb::Contract { repeat, busy, pair } => {
            contract::run(&workspace, &contract::Plan { repeat: *repeat, busy: *busy, pair: pair.as_deref() })
        }
        Verb::Bench { names } => bench::run(&workspace, names),
        Verb::Soak(plan) => soak::run(&workspace, plan),
        Verb::Fuzz(plan) => fuzz::run(&workspace, plan),
        Verb::Services { command } => beside::run(&workspace, command),
        Verb::Chart { filter } => chart::run(&workspace, filter.as_deref()),
        Verb::Described => described::run(&workspace),
        Verb::Supply { advisories: true } => supply::run(&workspace, Advisories::Required),
        Verb::Supply { advisories: false } => supply::run(&workspace, Advisories::IfReachable),
        Verb::Sbom { output } => sbom::write(&workspace, output.as_deref()).map(drop),
        Verb::Ci => ci::run(&workspace),
        Verb::Model { options } => model::run(&workspace, options),
        Verb::Rules => ci::rules(&workspace),
    }
}
