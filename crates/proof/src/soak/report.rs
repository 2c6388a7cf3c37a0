//! What a soak did, or what it found.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::footprint::Footprint;

/// A soak that found nothing.
#[derive(Clone, Debug)]
pub struct Report {
    /// What chose.
    pub seed: u64,
    /// `embedded` or `cloud`.
    pub pair: &'static str,
    /// How many steps there were.
    pub steps: u64,
    /// How many of each action, answer and event.
    pub counts: BTreeMap<String, u64>,
    /// How much time passed, by the replicas' clocks.
    pub time: Duration,
    /// The oldest tail that could have been published, over the time in which it could.
    pub oldest_tail: Duration,
    /// How many acknowledged writes were lost with a tail.
    pub lost: usize,
    /// How many lines the trace has.
    pub lines: u64,
    /// SHA-256 over them.
    pub digest: String,
    /// The lines that were kept.
    pub trace: Vec<String>,
    /// Before anything was made, and after everything was gone.
    pub footprints: (Footprint, Footprint),
}

/// A soak that found something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What chose.
    pub seed: u64,
    /// `embedded` or `cloud`.
    pub pair: &'static str,
    /// How many steps were asked for.
    pub steps: u64,
    /// How many replicas and tenants there were.
    pub size: (usize, usize),
    /// At which step it was found; the one after the last is the end.
    pub step: u64,
    /// What was found.
    pub finding: String,
    /// SHA-256 over the trace up to there.
    pub digest: String,
    /// The trace up to there, or its end.
    pub trace: Vec<String>,
}

/// How many lines of the trace are shown.
const SHOWN: usize = 60;

impl Failure {
    /// The command that runs it again.
    #[must_use]
    pub fn replay(&self) -> String {
        let Self { seed, pair, steps, size: (replicas, tenants), .. } = self;
        format!(
            "cargo xtask soak --pair {pair} --seed {seed} --rounds 1 --steps {steps} --replicas {replicas} --tenants {tenants}"
        )
    }

    /// The tenant that it is about, where it is about one.
    fn tenant(&self) -> Option<&str> {
        self.finding.split_once(": ").map(|(key, _)| key).filter(|key| key.contains('/'))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, pair, step, finding, digest, trace, .. } = self;
        writeln!(f, "seed {seed} on the {pair} pair, step {step}: {finding}")?;
        // The calls and events of one tenant are the shortest story of it that is still true.
        let about = self.tenant();
        let shown: Vec<&String> =
            trace.iter().filter(|line| about.is_none_or(|key| line.contains(key))).collect();
        writeln!(
            f,
            "the last of the trace{}:",
            about.map_or_else(String::new, |key| format!(", as far as it names {key}"))
        )?;
        for line in &shown[shown.len().saturating_sub(SHOWN)..] {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "the trace's SHA-256 is {digest}")?;
        write!(f, "run it again: {}", self.replay())
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, pair, steps, counts, time, oldest_tail, lost, lines, digest, footprints, .. } = self;
        writeln!(
            f,
            "seed {seed} on the {pair} pair: {steps} steps in {time:.0?} of the replicas' time held"
        )?;
        let list = |prefix: &str| {
            let found = counts.iter().filter_map(|(what, count)| Some((what.strip_prefix(prefix)?, count)));
            found.map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
        };
        for prefix in ["step ", "answer ", "event ", "write ", "sql ", "history "] {
            writeln!(f, "  {}: {}", prefix.trim(), list(prefix))?;
        }
        writeln!(f, "  oldest tail {oldest_tail:.1?}; acknowledged writes that went with a tail: {lost}")?;
        let (before, after) = footprints;
        writeln!(
            f,
            "  descriptors {} -> {}, resident {} -> {} KiB",
            before.descriptors, after.descriptors, before.resident_kib, after.resident_kib
        )?;
        write!(f, "  trace: {lines} lines, SHA-256 {digest}")
    }
}
