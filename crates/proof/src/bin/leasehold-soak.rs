//! Soaks one round after the other, each by the next seed, until something is found: `cargo xtask soak`.

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum};
use leasehold_proof::soak::{Footprint, SoakPlan, soak_cloud, soak_embedded};
use leasehold_types::{Clock as _, SystemClock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pair {
    Embedded,
    Cloud,
}

/// Uses and disturbs a fleet for as long as one likes, by a seed.
#[derive(Debug, Parser)]
#[command(name = "leasehold-soak", version)]
struct Args {
    /// The first round's seed; each further round has the next one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For how long rounds are begun, such as `10m`; for ever where it is not said
    #[arg(long = "for", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// How many rounds at the most
    #[arg(long)]
    rounds: Option<u64>,
    /// Steps of a round
    #[arg(long, default_value_t = 2_000)]
    steps: u64,
    /// Which stores
    #[arg(long, value_enum, default_value = "embedded")]
    pair: Pair,
    /// Replicas of a round
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    replicas: u8,
    /// Tenants of a round
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    tenants: u16,
    /// Where the whole trace of the last round goes
    #[arg(long)]
    trace: Option<PathBuf>,
}

/// By how much memory may grow after the second round, whatever the rounds are like.
const GROWTH_KIB_MAX: u64 = 256 << 10;

fn main() -> ExitCode {
    let args = Args::parse();
    let began = SystemClock.now();
    let mut warm = None;
    for round in 0.. {
        let over = args.time.is_some_and(|time| SystemClock.now().since(began) >= time);
        if over || args.rounds.is_some_and(|rounds| round >= rounds) {
            break;
        }
        let mut plan = SoakPlan::new(args.seed + round);
        plan.steps = args.steps;
        plan.keeps_trace = args.trace.is_some();
        (plan.replicas, plan.tenants) = (args.replicas.into(), args.tenants.into());
        let outcome = match args.pair {
            Pair::Embedded => soak_embedded(plan),
            Pair::Cloud => in_real_time(plan),
        };
        let trace = outcome.as_ref().map_or_else(|failure| &failure.trace, |report| &report.trace);
        if let Some(path) = &args.trace
            && let Err(error) = fs::write(path, trace.join("\n") + "\n")
        {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        match outcome {
            Ok(report) => println!("{report}"),
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        let Ok(now) = Footprint::now() else { continue };
        if round == 1 {
            warm = Some(now.resident_kib);
        }
        if let Some(grown) = warm.map(|warm| now.resident_kib.saturating_sub(warm))
            && grown > GROWTH_KIB_MAX
        {
            eprintln!("memory has grown by {grown} KiB since the second round");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn in_real_time(
    plan: SoakPlan,
) -> Result<leasehold_proof::soak::Report, Box<leasehold_proof::soak::Failure>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(soak_cloud(plan))
}
