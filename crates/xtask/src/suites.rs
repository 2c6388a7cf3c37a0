//! `cargo xtask test`: every suite of the workspace.
//!
//! The embedded pair of backends needs no server; what the cloud pair needs is started here, before the runner.

use leasehold_services::Services;

use crate::{
    XtaskError, described,
    rows::{PAIRS, ROWS, Tally},
    tool::Cargo,
    workspace::Workspace,
};

/// Runs the documentation's examples, then all tests, then holds a replica to its description. With `filters`, only the tests that the
/// runner selects by them.
pub(crate) fn run(workspace: &Workspace, filters: &[String]) -> Result<(), XtaskError> {
    let cargo = Cargo::of(workspace);
    cargo.ensure_runner()?;

    let with_filters = |arguments: &[&str]| {
        let own = arguments.iter().map(|argument| (*argument).to_owned());
        own.chain(filters.iter().cloned()).collect::<Vec<_>>()
    };
    let list = cargo
        .read(&with_filters(&["nextest", "list", "--workspace", "--message-format", "json"]))
        .and_then(|json| Tally::of_list(&json).map_err(XtaskError::List))?;
    if filters.is_empty() {
        for pair in PAIRS {
            list.check(pair)?;
        }
        cargo.run(&["test", "--doc", "--workspace"])?;
    }
    // Only now, so that what had to be built was built without servers beside it.
    let services = Services::start(&workspace.home())?;
    let cargo = cargo.telling(services.variables());
    cargo.run(&with_filters(&["nextest", "run", "--workspace"])).inspect_err(|_| services.tell_logs())?;
    drop(services);
    if filters.is_empty() {
        described::run(workspace)?;
    }
    for (pair, rows) in list.counts() {
        println!("contract rows that ran and held for the {pair} pair: {rows} of {}", ROWS.len());
    }
    Ok(())
}
