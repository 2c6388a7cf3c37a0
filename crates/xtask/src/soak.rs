//! `cargo xtask soak`: a fleet that is used and disturbed by a seed, for as long as one likes.

use clap::Args;
use leasehold_services::Services;

use crate::{
    XtaskError,
    rows::{CLOUD, PAIRS},
    tool::Cargo,
    workspace::Workspace,
};

/// The crate that has it, and its program.
const PACKAGE: &str = "leasehold-proof";
const PROGRAM: &str = "leasehold-soak";

/// What to soak.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The first round's seed; each further round has the next one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For how long rounds are begun, such as `10m`; for ever where it is not said
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
    /// How many rounds at the most
    #[arg(long)]
    rounds: Option<u64>,
    /// Steps of a round
    #[arg(long)]
    steps: Option<u64>,
    /// Which pair of backends: on `embedded` a seed replays, on `cloud` the order is the world's
    #[arg(long, default_value = "embedded", value_parser = clap::builder::PossibleValuesParser::new(PAIRS))]
    pair: String,
    /// Replicas of a round
    #[arg(long)]
    replicas: Option<u8>,
    /// Tenants of a round
    #[arg(long)]
    tenants: Option<u16>,
    /// Where the whole trace of the last round goes
    #[arg(long, value_name = "PATH")]
    trace: Option<String>,
}

/// Soaks until something is found or time is up.
pub(crate) fn run(workspace: &Workspace, plan: &Plan) -> Result<(), XtaskError> {
    let cargo = Cargo::of(workspace);
    cargo.run(&["build", "--package", PACKAGE, "--bin", PROGRAM])?;
    let services = (plan.pair == CLOUD).then(|| Services::start(&workspace.home())).transpose()?;
    let cargo = match &services {
        Some(services) => cargo.telling(services.variables()),
        None => cargo,
    };
    let mut arguments: Vec<String> =
        ["run", "--quiet", "--package", PACKAGE, "--bin", PROGRAM, "--"].map(str::to_owned).to_vec();
    let options = [
        ("--seed", Some(plan.seed.to_string())),
        ("--pair", Some(plan.pair.clone())),
        ("--for", plan.time.clone()),
        ("--rounds", plan.rounds.map(|rounds| rounds.to_string())),
        ("--steps", plan.steps.map(|steps| steps.to_string())),
        ("--replicas", plan.replicas.map(|replicas| replicas.to_string())),
        ("--tenants", plan.tenants.map(|tenants| tenants.to_string())),
        ("--trace", plan.trace.clone()),
    ];
    for (option, value) in options {
        arguments.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
    }
    cargo.run(&arguments)
}
