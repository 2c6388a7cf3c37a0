//! What a suite saw, for people: a line of the run's output, and a row of the table in `benches/README.md`.

use std::{fmt::Write as _, fs, path::PathBuf, time::Duration};

/// Where rows are left for `cargo xtask test --report`.
const DIRECTORY: &str = "LEASEHOLD_FLEET_REPORTS";

/// One suite's account.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) requests: u64,
    pub(crate) acknowledged: u64,
    /// What clients saw go wrong, by what it was.
    pub(crate) errors: Vec<(String, u64)>,
    /// From request to answer.
    pub(crate) latencies: Vec<Duration>,
    /// The longest time that a writer waited from one acknowledgement to the next.
    pub(crate) longest: Duration,
    /// What else is worth knowing.
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// One more thing that is worth knowing.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says it.
    pub(crate) fn tell(mut self, suite: &str, launcher: &str) {
        self.latencies.sort_unstable();
        let at = |part: usize| {
            let index = (self.latencies.len() * part / 1_000).min(self.latencies.len().saturating_sub(1));
            self.latencies.get(index).copied().unwrap_or_default()
        };
        let errors = match self.errors.as_slice() {
            [] => "none".to_owned(),
            errors => errors.iter().fold(String::new(), |mut all, (error, count)| {
                let between = if all.is_empty() { "" } else { ", " };
                let _ = write!(all, "{between}{count} × {error}");
                all
            }),
        };
        let (half, most) = (milliseconds(at(500)), milliseconds(at(990)));
        let row = format!(
            "| {suite} | {launcher} | {} | {} | {errors} | {half} | {most} | {} | {} |\n",
            self.requests,
            self.acknowledged,
            milliseconds(self.longest),
            self.notes.join("; "),
        );
        println!(
            "suite | launcher | requests | acknowledged | errors | p50 | p99 | longest wait of a writer | notes"
        );
        print!("{row}");
        if let Some(directory) = std::env::var_os(DIRECTORY) {
            let directory = PathBuf::from(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("{suite}-{launcher}.row")), row).unwrap();
        }
    }
}

fn milliseconds(time: Duration) -> String {
    match time.as_millis() {
        0..10_000 => format!("{} ms", time.as_millis()),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
