//! `cargo xtask fuzz`: what every run of the suites makes up for each format, for longer and from other seeds (decision 0053).

use std::time::{Duration, Instant};

use clap::Args;

use crate::{XtaskError, tool::Cargo, workspace::Workspace};

/// The tests that make inputs up, by how they are named.
const TESTS: &str = "test(/(^|::)fuzz::/) or test(/_whatever_the_bytes$/)";

/// How to make inputs up.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The first round's seed; each further round has the next one. The same seed makes up the same inputs
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// For how long rounds are begun, such as `30s`, `10m` or `2h`; one round where neither this nor `--rounds` is said
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// How many rounds at the most
    #[arg(long)]
    rounds: Option<u64>,
    /// Inputs for each format in a round
    #[arg(long, default_value_t = 10_000)]
    cases: u32,
    /// Only this format, by its corpus' directory: `cargo xtask fuzz --format manifest`
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
}

/// Runs rounds until something is found or enough of them were run.
pub(crate) fn run(workspace: &Workspace, plan: &Plan) -> Result<(), XtaskError> {
    let cargo = Cargo::of(workspace);
    cargo.ensure_runner()?;
    let begun = now();
    let rounds_max = plan.rounds.unwrap_or(if plan.time.is_some() { u64::MAX } else { 1 });
    for round in 0..rounds_max {
        if plan.time.is_some_and(|time| begun.elapsed() >= time) {
            break;
        }
        let (seed, cases) = (plan.seed.wrapping_add(round).to_string(), plan.cases.to_string());
        println!("round {}: seed {seed}", round + 1);
        let mut wishes = vec![
            ("LEASEHOLD_TEST_FUZZ_SEED", seed.as_str()),
            ("LEASEHOLD_TEST_FUZZ_CASES", cases.as_str()),
            // What is made up by `proptest!` goes by variables of its own.
            ("PROPTEST_RNG_SEED", seed.as_str()),
            ("PROPTEST_CASES", cases.as_str()),
        ];
        wishes.extend(plan.format.as_deref().map(|format| ("LEASEHOLD_TEST_FUZZ_FORMAT", format)));
        let tests = ["nextest", "run", "--workspace", "--no-fail-fast", "-E", TESTS];
        cargo.run_with(&tests, &wishes)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "how long a person wants to wait is no time of a test's")]
fn now() -> Instant {
    Instant::now()
}

/// A whole number of seconds, minutes or hours.
fn time(text: &str) -> Result<Duration, String> {
    let refuse = || format!("`{text}` is no time: a whole number of `s`, `m` or `h`, such as 10m");
    let (digits, seconds) = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((digits, "s")) => (digits, 1),
        Some((digits, "m")) => (digits, 60),
        Some((digits, "h")) => (digits, 3_600),
        _ => return Err(refuse()),
    };
    let number: u32 = digits.parse().map_err(|_| refuse())?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        for text in ["", "m", "10", "10x", "1.5h", "-1s", "é"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
