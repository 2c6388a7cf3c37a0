//! What must not compile, held to it under whichever compiler is there.
//!
//! A case is a Rust file that says itself what the compiler answers, above the line that it answers for:
//!
//! ```text
//! //@ error[E0609]: no field `connection`
//! let _ = &view.connection;
//! ```
//!
//! or in its first line that it compiles: `//@ compiles`. Each directory has at least one of those, which uses what the
//! others abuse: where it fails, the others fail for a reason that proves nothing. Compilers reword and move what they
//! say, so a case states a code and the part of the text that carries the proof, and nothing is compared as a whole.
//!
//! One case is for one stage of the compiler (types, then borrows), since some versions do not get to the second in a
//! file that fails in the first.

mod case;
mod project;

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

use cargo_metadata::{Message, diagnostic::DiagnosticLevel};

use self::{
    case::{Case, Outcome},
    project::Project,
};

/// Compiles the cases that lie in `cases_dir` against the crate in `crate_dir` and what that depends on, all at once.
/// `cases_dir` is taken from `crate_dir`.
///
/// # Panics
/// If a case does not do what it states, with the compiler's words; if there is no case, or none that compiles.
#[track_caller]
pub fn check(crate_dir: impl AsRef<Path>, cases_dir: impl AsRef<Path>) {
    let (crate_dir, cases_dir) = (crate_dir.as_ref(), cases_dir.as_ref());
    let cases = Case::all_in(&crate_dir.join(cases_dir));
    let project = Project::create(crate_dir, cases_dir, &cases)
        .unwrap_or_else(|error| panic!("no project could be made of {}: {error}", cases_dir.display()));
    let mut outcomes = compile(&project);

    let mut complaints = Vec::new();
    for case in &cases {
        complaints.extend(case.judge(&outcomes.by_case.remove(&case.name).unwrap_or_default()));
    }
    assert!(
        complaints.is_empty(),
        "not everything in {} does what it states:\n\n{}\n{}",
        cases_dir.display(),
        complaints.join("\n"),
        outcomes.elsewhere
    );
}

/// What the compiler said.
#[derive(Debug, Default)]
struct Outcomes {
    by_case: BTreeMap<String, Outcome>,
    /// Errors in anything but a case, and cargo's own words if no case was compiled at all.
    elsewhere: String,
}

fn compile(project: &Project) -> Outcomes {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--offline", "--keep-going", "--message-format", "json", "--manifest-path"])
        .arg(project.manifest())
        .current_dir(project.workspace_root())
        .env("CARGO_TARGET_DIR", project.target())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cargo could not be started: {error}"));

    let mut outcomes = Outcomes::default();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        match message.unwrap_or_else(|error| panic!("cargo's messages ended early: {error}")) {
            Message::CompilerArtifact(artifact) => {
                if let Some(case) = project.case_of(&artifact.target) {
                    outcomes.by_case.entry(case).or_default().compiled = true;
                }
            }
            Message::CompilerMessage(said) if said.message.level == DiagnosticLevel::Error => {
                match project.case_of(&said.target) {
                    Some(case) => outcomes.by_case.entry(case).or_default().errors.push(said.message),
                    None => outcomes.elsewhere += &said.message.to_string(),
                }
            }
            _ => {}
        }
    }
    if outcomes.by_case.is_empty() {
        outcomes.elsewhere += &String::from_utf8_lossy(&output.stderr);
    }
    outcomes
}
