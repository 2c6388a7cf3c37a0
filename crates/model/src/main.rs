//! `cargo xtask model`: see its `--help`.

use std::process::ExitCode;

use clap::Parser;
use leasehold_model::{
    Bounds, Configuration, FleetBounds, FleetConfiguration, Mutation, search, search_fleet,
};

/// Explores everything within bounds and says how much that was: the suite's configurations, the deep ones with them, or one
/// search with bounds of its own.
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is given or not")]
#[derive(Debug, Parser)]
#[command(name = "cargo xtask model", bin_name = "cargo xtask model")]
struct Cli {
    /// The larger configurations too
    #[arg(long)]
    deep: bool,
    /// This configuration alone
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// How many threads look; with one, the way to a violation is the shortest
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// A search of its own, with so many tenures
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=i64::from(Bounds::TENURES_MAX)))]
    tenures: Option<u8>,
    /// Publishes that each tenure begins
    #[arg(long, default_value_t = 1, requires = "tenures")]
    publishes: u8,
    /// Sweeps that each tenure begins
    #[arg(long, default_value_t = 0, requires = "tenures")]
    sweeps: u8,
    /// How often each tenure asks whether it may be resumed
    #[arg(long, default_value_t = 0, requires = "tenures")]
    resumes: u8,
    /// Forgets in all
    #[arg(long, default_value_t = 0, requires = "tenures")]
    forgets: u8,
    /// How often the forgotten tenant is looked at again
    #[arg(long, default_value_t = 0, requires = "tenures")]
    rechecks: u8,
    /// Steps without an answer
    #[arg(long, default_value_t = 0, requires = "tenures")]
    lost: u8,
    /// Puts that are executed after their caller saw an error
    #[arg(long, default_value_t = 0, requires = "tenures")]
    late: u8,
    /// How often the row falls back
    #[arg(long, default_value_t = 0, requires = "tenures")]
    rewinds: u8,
    /// The lease store may be silent after a manifest
    #[arg(long, requires = "tenures")]
    row_silent: bool,
    /// Images are objects of their own
    #[arg(long, requires = "tenures")]
    objects: bool,
    /// Listings come in two pages
    #[arg(long, requires = "tenures")]
    paged: bool,
    /// A fleet of so many tenures with honest clocks
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=3))]
    fleet: Option<u8>,
    /// Writes of each tenure
    #[arg(long, default_value_t = 1, requires = "fleet")]
    writes: u8,
    /// Uploads of each tenure
    #[arg(long, default_value_t = 1, requires = "fleet")]
    uploads: u8,
    /// How often anybody asks for anything
    #[arg(long, default_value_t = 1, requires = "fleet")]
    asks: u8,
    /// Renewals
    #[arg(long, default_value_t = 1, requires = "fleet")]
    renewals: u8,
    /// Failures of the store
    #[arg(long, default_value_t = 0, requires = "fleet")]
    failures: u8,
    /// Calls run while a handoff drains
    #[arg(long, requires = "fleet")]
    working: bool,
    /// A deviation from the protocol, within the bounds in which it is found or those given
    #[arg(long, value_name = "NAME", value_parser = mutation)]
    mutation: Option<Mutation>,
}

/// A search with a name.
enum Search {
    Life(&'static str, Bounds),
    Fleet(&'static str, FleetBounds),
}

fn mutation(name: &str) -> Result<Mutation, String> {
    Mutation::ALL
        .into_iter()
        .find(|mutation| mutation.name() == name)
        .ok_or_else(|| format!("one of {}", Mutation::ALL.map(Mutation::name).join(", ")))
}

impl Cli {
    fn searches(&self) -> Vec<Search> {
        if let Some(tenures) = self.tenures {
            let bounds = Bounds {
                tenures,
                publishes: self.publishes,
                sweeps: self.sweeps,
                resumes: self.resumes,
                forgets: self.forgets,
                rechecks: self.rechecks,
                lost: self.lost,
                late: self.late,
                rewinds: self.rewinds,
                row_silent: self.row_silent,
                inline: !self.objects,
                paged: self.paged,
                honest: false,
                mutation: self.mutation,
            };
            return vec![Search::Life("given", bounds)];
        }
        if let Some(tenures) = self.fleet {
            let Self { writes, uploads, asks, renewals, failures, working, .. } = *self;
            let mutation = None;
            let bounds =
                FleetBounds { tenures, writes, uploads, asks, renewals, failures, working, mutation };
            return vec![Search::Fleet("given", bounds)];
        }
        if let Some(mutation) = self.mutation {
            return vec![Search::Life(mutation.name(), mutation.bounds())];
        }
        let deep = self.deep || self.only.is_some();
        let lives = Configuration::SUITE.into_iter().chain(Configuration::DEEP.into_iter().filter(|_| deep));
        let fleets = FleetConfiguration::SUITE;
        let fleets = fleets.into_iter().chain(FleetConfiguration::DEEP.into_iter().filter(|_| deep));
        let wanted = |name: &str| self.only.as_deref().is_none_or(|only| only == name);
        let lives =
            lives.filter(|known| wanted(known.name)).map(|known| Search::Life(known.name, known.bounds));
        let fleets =
            fleets.filter(|known| wanted(known.name)).map(|known| Search::Fleet(known.name, known.bounds));
        lives.chain(fleets).collect()
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let searches = cli.searches();
    if searches.is_empty() {
        eprintln!("error: no configuration has this name; docs/model.md lists them");
        return ExitCode::FAILURE;
    }
    let mut held = true;
    for wanted in searches {
        let (name, outcome) = match wanted {
            Search::Life(name, bounds) => (name, search(bounds, cli.threads)),
            Search::Fleet(name, bounds) => (name, search_fleet(bounds, cli.threads)),
        };
        println!("{name}: {outcome}");
        held &= outcome.violation.is_none();
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
