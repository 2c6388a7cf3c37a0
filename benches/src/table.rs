//! A bench's result as a Markdown table, printed and, where `cargo xtask bench` asks for it, kept for benches/README.md.

use std::{env, fs, path::PathBuf};

use crate::BenchError;

/// Where `cargo xtask bench` wants the tables; one file for each bench.
const TABLES: &str = "LEASEHOLD_BENCH_TABLES";

/// A table that grows by rows.
#[derive(Clone, Debug)]
pub struct Table {
    bench: &'static str,
    text: String,
    columns: usize,
}

impl Table {
    /// An empty one for the bench of this name.
    #[must_use]
    pub fn new(bench: &'static str, columns: &[&str]) -> Self {
        let mut table = Self { bench, text: String::new(), columns: columns.len() };
        table.line(columns);
        table.line(&vec!["---"; columns.len()]);
        table
    }

    /// Adds a row, and shows it at once.
    pub fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        assert_eq!(cells.len(), self.columns, "a cell for each column");
        let line = self.line(cells);
        println!("{line}");
    }

    fn line<S: AsRef<str>>(&mut self, cells: &[S]) -> String {
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        let line = format!("| {} |", cells.join(" | "));
        self.text.push_str(&line);
        self.text.push('\n');
        line
    }

    /// Keeps it where it was asked for.
    pub fn keep(&self) -> Result<(), BenchError> {
        if let Some(directory) = env::var_os(TABLES) {
            fs::write(PathBuf::from(directory).join(format!("{}.md", self.bench)), &self.text)?;
        }
        Ok(())
    }
}

/// `this` for each `that`, with the digits that mean something.
#[must_use]
pub fn ratio(this: f64, that: f64) -> String {
    let ratio = this / that;
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}
