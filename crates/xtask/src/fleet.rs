//! `cargo xtask test --fleet` and `--compose`: the suites of a whole fleet, by one of two launchers.

use std::{
    fs,
    path::{Path, PathBuf},
};

use leasehold_services::Services;

use crate::{
    XtaskError,
    bench::{machine, replaced},
    containers::{Containers, Found},
    previous,
    tool::Cargo,
    workspace::Workspace,
};

const DOCUMENT: &str = "benches/README.md";
/// The table's name there.
const TABLE: &str = "fleet";
const HEAD: &str = "| suite | launcher | requests | acknowledged | errors that clients saw | p50 | p99 | longest wait of a writer | notes |\n\
    |---|---|--:|--:|---|--:|--:|--:|---|\n";

/// What starts the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    Processes,
    Compose,
}

/// What is run of them.
#[derive(Debug, Default)]
pub(crate) struct Plan<'p> {
    /// The runner's, which select some; else all.
    pub(crate) filters: &'p [String],
    /// Whether what they report goes into the table of the benches.
    pub(crate) report: bool,
    /// The commit whose build is the one before this one ([`previous::build`]).
    pub(crate) previous: Option<&'p str>,
}

/// Runs the suites.
pub(crate) fn run(workspace: &Workspace, launcher: Launcher, plan: &Plan<'_>) -> Result<(), XtaskError> {
    let cargo = Cargo::of(workspace);
    cargo.ensure_runner()?;
    let mut variables = Vec::new();
    let previous = previous::build(workspace, plan.previous)?;
    if let Some(binary) = &previous {
        variables.push((previous::VARIABLE, binary.display().to_string()));
    }
    // Before anything runs beside it. With it the binary is built, which the suites start.
    cargo.run(&["nextest", "run", "--workspace", "--no-run"])?;
    let rows = workspace.target().join("fleet-reports");
    if plan.report {
        variables.push(("LEASEHOLD_FLEET_REPORTS", rows.display().to_string()));
    }
    let containers = match launcher {
        Launcher::Processes => {
            Services::install(&workspace.home())?;
            None
        }
        Launcher::Compose => match Containers::find(workspace, previous.as_deref())? {
            Found::Engine(containers) => {
                variables.push(("LEASEHOLD_FLEET_LAUNCHER", "compose".to_owned()));
                variables.push(("LEASEHOLD_FLEET_COMPOSE", containers.compose().to_owned()));
                if let Some(image) = containers.previous() {
                    variables.push(("LEASEHOLD_FLEET_PREVIOUS_IMAGE", image.to_owned()));
                }
                Some(containers)
            }
            Found::Nothing { why } => {
                println!("NAMED EXCEPTION: compose: {why}");
                return Ok(());
            }
        },
    };
    let own = ["nextest", "run", "--workspace", "--profile", "fleet"].map(str::to_owned);
    let arguments: Vec<String> = own.into_iter().chain(plan.filters.iter().cloned()).collect();
    let done = cargo.telling(&variables).run(&arguments);
    drop(containers);
    done?;
    if plan.report { write(workspace.root(), &rows) } else { Ok(()) }
}

/// Puts the suites' rows into the table, each in the place of its own older one.
fn write(root: &Path, rows: &Path) -> Result<(), XtaskError> {
    let document = root.join(DOCUMENT);
    let read = |path: &PathBuf| {
        fs::read_to_string(path).map_err(|source| XtaskError::Read { path: path.clone(), source })
    };
    let text = read(&document)?;
    let entries = fs::read_dir(rows).map_err(|source| XtaskError::Read { path: rows.to_owned(), source })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    let fresh = paths.iter().map(read).collect::<Result<Vec<String>, _>>()?;
    let table = table(&text, &fresh);
    let noted = format!("{table}\nThe newest rows were measured on {} with the debug build.\n", machine());
    let no_marks = || XtaskError::NoMarks { path: document.clone(), name: TABLE.to_owned() };
    let text = replaced(&text, TABLE, &noted).ok_or_else(no_marks)?;
    fs::write(&document, text).map_err(|source| XtaskError::Write { path: document.clone(), source })
}

/// The rows that `text` has and these, which go before the older ones of their suite and launcher.
fn table(text: &str, fresh: &[String]) -> String {
    let whose =
        |row: &str| row.split('|').skip(1).take(2).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let marks = (format!("<!-- table {TABLE} -->"), format!("<!-- end {TABLE} -->"));
    let old =
        text.split_once(&marks.0).and_then(|(_, rest)| rest.split_once(&marks.1)).map_or("", |(old, _)| old);
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| suite ");
    let kept = old.lines().filter(is_row).filter(|line| !fresh.iter().any(|row| whose(row) == whose(line)));
    let mut rows: Vec<String> = kept.map(|line| format!("{line}\n")).chain(fresh.iter().cloned()).collect();
    rows.sort_by_key(|row| whose(row));
    format!("{HEAD}{}", rows.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_takes_the_place_of_its_suites_older_one() {
        let text = "a\n<!-- table fleet -->\n| suite | launcher |\n|---|---|\n| killed | compose | 1 |\n| killed | processes | 2 |\n\
            <!-- end fleet -->\nb\n";
        let fresh = ["| killed | processes | 3 |\n".to_owned(), "| frozen | processes | 4 |\n".to_owned()];
        let rows = table(text, &fresh);
        let rows: Vec<&str> = rows.lines().skip(2).collect();
        assert_eq!(
            rows,
            ["| frozen | processes | 4 |", "| killed | compose | 1 |", "| killed | processes | 3 |"]
        );
    }

    #[test]
    fn the_page_has_a_place_for_the_suites() {
        let workspace = Workspace::find().unwrap();
        let text = fs::read_to_string(workspace.root().join(DOCUMENT)).unwrap();
        assert!(replaced(&text, TABLE, "").is_some());
    }
}
