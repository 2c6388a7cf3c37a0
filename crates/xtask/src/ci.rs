//! `cargo xtask ci`: everything that a change must pass, the quickest answers first.

use std::fmt::Display;

use crate::{
    XtaskError, chart, documents,
    fleet::{self, Launcher},
    house, layers, sbom, suites,
    supply::{self, Advisories},
    threats,
    tool::Cargo,
    unsafety,
    workspace::Workspace,
};

const STEPS: usize = 9;

fn header(step: usize, title: &str) {
    println!("\n=== {step}/{STEPS} {title} ===");
}

/// Runs every step; the first one that fails ends it.
pub(crate) fn run(workspace: &Workspace) -> Result<(), XtaskError> {
    let cargo = Cargo::of(workspace);

    header(1, "format");
    cargo.run(&["fmt", "--all", "--check"])?;

    header(2, "rules: layers, house, unsafe, documents, threats");
    rules(workspace)?;

    header(3, "supply chain");
    supply::run(workspace, Advisories::IfReachable)?;
    sbom::write(workspace, None)?;

    header(4, "lints");
    cargo.run(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;

    header(5, "documentation");
    cargo.run_with(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;

    header(6, "chart");
    chart::run(workspace, None)?;

    header(7, "tests of a fleet of processes");
    fleet::run(workspace, Launcher::Processes, &fleet::Plan::default())?;

    header(8, "tests of a fleet of containers");
    fleet::run(workspace, Launcher::Compose, &fleet::Plan::default())?;

    header(9, "tests");
    suites::run(workspace, &[])
}

/// Checks what no compiler checks and prints each breach.
pub(crate) fn rules(workspace: &Workspace) -> Result<(), XtaskError> {
    let breaches = tell("layers", &layers::breaches(&layers::members(workspace.metadata())))
        + tell("house", &house::breaches(workspace)?)
        + tell("unsafe", &unsafety::breaches(workspace)?)
        + tell("documents", &documents::breaches(workspace)?)
        + tell("threats", &threats::breaches(workspace)?);
    if breaches == 0 { Ok(()) } else { Err(XtaskError::Breaches { breaches }) }
}

fn tell(rule: &str, breaches: &[impl Display]) -> usize {
    if breaches.is_empty() {
        println!("{rule}: held");
    }
    for breach in breaches {
        println!("{rule}: {breach}");
    }
    breaches.len()
}
