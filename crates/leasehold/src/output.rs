//! What is said: documents on the standard output, notes and failures on the standard error stream.

use std::{
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use serde::Serialize;
use serde_json::{Value, json};
use tabwriter::TabWriter;

use crate::{error::CliError, progress::Progress};

/// How a verb speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints `document`: as one line of JSON for programs, else as `human` writes it, tabs becoming columns.
    pub(crate) fn show(
        self,
        document: &impl Serialize,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let written = if self.json { write_line(document) } else { write_table(human) };
        match written {
            // Whoever reads has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(CliError::Output),
        }
    }

    /// Says why a verb failed: one line for people, or the document for programs, on the standard output like any other.
    pub(crate) fn failed(self, error: &CliError) {
        if self.json {
            // Nobody is left to tell where the reader has gone.
            let _ = write_line(&json!({ "error": document_of(error) }));
            return;
        }
        let line = match error.advice() {
            Some(advice) => format!("{}; {advice}", error.line()),
            None => error.line(),
        };
        let _ = writeln!(io::stderr(), "leasehold: error[{}]: {line}", code_of(error));
    }

    /// Progress of something long, if somebody looks.
    pub(crate) fn progress(self) -> Progress {
        Progress::new(!self.json && io::stderr().is_terminal())
    }
}

/// Tells people something beside the answer.
pub(crate) fn note(text: &str) {
    // Nobody is left to tell where the terminal has gone.
    let _ = writeln!(io::stderr(), "leasehold: {text}");
}

fn code_of(error: &CliError) -> &str {
    match error {
        CliError::Problem(problem) => problem.code_text(),
        _ => error.code().as_str(),
    }
}

fn document_of(error: &CliError) -> Value {
    let mut document = json!({ "code": code_of(error), "message": error.line() });
    let more = match error {
        CliError::Problem(problem) => Some(("problem", problem.body().clone())),
        CliError::Serve(leasehold_server::ServeError::NotFlushed(report)) => {
            Some(("not_flushed", json!(report.not_flushed)))
        }
        _ => None,
    };
    if let (Some((name, value)), Value::Object(fields)) = (more, &mut document) {
        fields.insert(name.to_owned(), value);
    }
    document
}

fn write_line(document: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(document)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn write_table(human: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut table = TabWriter::new(io::stdout().lock()).padding(2);
    human(&mut table)?;
    table.flush()
}

/// A path in a document: as text, whatever it is made of.
pub(crate) fn path_text(path: &Path) -> String {
    path.display().to_string()
}
