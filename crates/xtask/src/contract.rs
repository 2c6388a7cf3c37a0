//! `cargo xtask contract`: the contract's rows alone, as often as wanted, on a machine that has other things to do.

use leasehold_services::Services;

use crate::{
    XtaskError,
    busy::BusyCores,
    rows::{CLOUD, PAIRS, ROWS, Tally},
    tool::Cargo,
    workspace::Workspace,
};

/// The crate whose tests hold the rows.
const PACKAGE: &str = "leasehold-tenure";

/// What to run.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// How many times in a row.
    pub(crate) repeat: u32,
    /// Whether every core is kept busy meanwhile.
    pub(crate) busy: bool,
    /// One pair of backends; `None`: all of them.
    pub(crate) pair: Option<&'a str>,
}

/// Runs the rows; the first failure ends it.
pub(crate) fn run(workspace: &Workspace, plan: &Plan<'_>) -> Result<(), XtaskError> {
    let cargo = Cargo::of(workspace);
    cargo.ensure_runner()?;

    let pairs: Vec<&str> =
        PAIRS.into_iter().filter(|pair| plan.pair.is_none_or(|only| only == *pair)).collect();
    let filter = format!("test(/(^|::)contract::({})::/)", pairs.join("|"));
    let list = cargo
        .read(&["nextest", "list", "--package", PACKAGE, "--message-format", "json", "-E", &filter])
        .and_then(|json| Tally::of_list(&json).map_err(XtaskError::List))?;
    for pair in &pairs {
        list.check(pair)?;
    }

    let services = pairs.contains(&CLOUD).then(|| Services::start(&workspace.home())).transpose()?;
    let cargo = match &services {
        Some(services) => cargo.telling(services.variables()),
        None => cargo,
    };
    // Only now, so that what had to be built was built on idle cores.
    let busy = plan.busy.then(BusyCores::start);
    let repeat = plan.repeat.to_string();
    let mut arguments = vec!["nextest", "run", "--package", PACKAGE, "-E", &filter];
    if plan.repeat > 1 {
        arguments.extend(["--stress-count", &repeat]);
    }
    let ran = cargo.run(&arguments);
    if let (Err(_), Some(services)) = (&ran, &services) {
        services.tell_logs();
    }
    ran?;
    let times = if plan.repeat > 1 { format!(", {repeat} times in a row") } else { String::new() };
    let load = busy.as_ref().map_or(String::new(), |busy| format!(", with {} cores kept busy", busy.cores()));
    for pair in pairs {
        let rows = ROWS.len();
        println!("{rows} of {rows} contract rows held for the {pair} pair{times}{load}");
    }
    Ok(())
}
