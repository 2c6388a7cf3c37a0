//! How findings are shown.

use serde::Serialize;

use super::finding::{Finding, Verdict};
use crate::{error::CliError, exit::Exit, output::Output};

/// The version of the document; what is in it is in `docs/doctor.md`.
const FORMAT: u32 = 1;

/// All findings of one run.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
    /// Whether a warning fails too.
    pub(super) is_strict: bool,
    /// Whether there was a configuration to look by.
    pub(super) is_loaded: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Document {
    format: u32,
    /// The worst of the verdicts; nothing that was skipped is one.
    verdict: Verdict,
    counts: Counts,
    checks: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    ok: usize,
    warn: usize,
    fail: usize,
    skipped: usize,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Entry {
    id: &'static str,
    verdict: Verdict,
    found: String,
    next: Option<String>,
}

impl Report {
    /// Says all of it, and how the process ends with it.
    pub(super) fn show(&self, output: Output) -> Result<Exit, CliError> {
        let document = self.document();
        output.show(&document, |out| {
            writeln!(out, "CHECK\tVERDICT\tFOUND")?;
            for Entry { id, verdict, found, next } in &document.checks {
                writeln!(out, "{id}\t{}\t{found}", verdict.as_str())?;
                if let Some(next) = next {
                    writeln!(out, "\t\t-> {next}")?;
                }
            }
            let Counts { ok, warn, fail, skipped } = document.counts;
            writeln!(out)?;
            writeln!(out, "{ok} ok, {warn} to know of, {fail} wrong, {skipped} skipped")
        })?;
        Ok(self.exit())
    }

    fn document(&self) -> Document {
        let count = |verdict| self.findings.iter().filter(|finding| finding.verdict == verdict).count();
        let entry = |finding: &Finding| Entry {
            id: finding.check.id(),
            verdict: finding.verdict,
            found: line(&finding.found),
            next: finding.next.as_deref().map(line),
        };
        Document {
            format: FORMAT,
            verdict: self.worst(),
            counts: Counts {
                ok: count(Verdict::Ok),
                warn: count(Verdict::Warn),
                fail: count(Verdict::Fail),
                skipped: count(Verdict::Skipped),
            },
            checks: self.findings.iter().map(entry).collect(),
        }
    }

    fn worst(&self) -> Verdict {
        let verdicts = self.findings.iter().map(|finding| finding.verdict);
        verdicts.filter(|verdict| *verdict != Verdict::Skipped).max().unwrap_or(Verdict::Ok)
    }

    fn exit(&self) -> Exit {
        match self.worst() {
            _ if !self.is_loaded => Exit::Usage,
            Verdict::Fail => Exit::Failed,
            Verdict::Warn if self.is_strict => Exit::Failed,
            _ => Exit::Done,
        }
    }
}

/// It may carry what somebody else sent, and goes to a terminal.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Check;

    fn report(findings: Vec<Finding>) -> Report {
        Report { findings, is_strict: false, is_loaded: true }
    }

    fn ok() -> Finding {
        Finding::ok(Check::PostgresTls, "fine")
    }

    fn warn() -> Finding {
        Finding::warn(Check::PostgresFsync, "odd", "look")
    }

    fn fail() -> Finding {
        Finding::fail(Check::PostgresReach, "bad\n\u{1b}[2J", "run")
    }

    fn skipped() -> Finding {
        Finding::skipped(Check::PostgresSchema, "postgres.reach failed")
    }

    #[test]
    fn the_process_ends_by_the_worst_of_them() {
        for (findings, verdict, exit, strict) in [
            (vec![ok(), skipped()], Verdict::Ok, Exit::Done, Exit::Done),
            (vec![ok(), warn()], Verdict::Warn, Exit::Done, Exit::Failed),
            (vec![fail(), warn(), skipped()], Verdict::Fail, Exit::Failed, Exit::Failed),
            (vec![], Verdict::Ok, Exit::Done, Exit::Done),
        ] {
            let report = report(findings);
            assert_eq!((report.worst(), report.exit()), (verdict, exit));
            assert_eq!(Report { is_strict: true, ..report }.exit(), strict);
        }
        let unloaded = Report { is_loaded: false, ..report(vec![fail()]) };
        assert_eq!(unloaded.exit(), Exit::Usage);
    }

    /// What programs read, to the letter.
    #[test]
    fn the_document_is_pinned() {
        let document = report(vec![fail(), skipped(), ok(), warn()]).document();
        assert_eq!(
            serde_json::to_string(&document).unwrap(),
            r#"{"format":1,"verdict":"fail","counts":{"ok":1,"warn":1,"fail":1,"skipped":1},"checks":[{"id":"postgres.reach","verdict":"fail","found":"bad  [2J","next":"run"},{"id":"postgres.schema","verdict":"skipped","found":"postgres.reach failed","next":null},{"id":"postgres.tls","verdict":"ok","found":"fine","next":null},{"id":"postgres.fsync","verdict":"warn","found":"odd","next":"look"}]}"#
        );
    }
}
