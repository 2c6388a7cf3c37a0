//! The README's first session, run from the README's own text.

use std::{fmt::Write as _, path::Path, process::Stdio};

use leasehold_server::Stores;
use leasehold_testkit::{CloudPair, Pair as _};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::served::{Served, config_in, soon};

const HEADING: &str = "## A first session";
/// The address that the README shows; the test puts its own there.
const ADDRESS: &str = "127.0.0.1:7400";
/// Stands in the README for what differs from run to run: times, sizes.
const ELLIPSIS: char = '…';
const MARK: &str = "@@@ next @@@";

/// A command and what it is shown to print.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The steps of the section's `console` blocks.
fn session() -> Vec<Step> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let section = readme.split_once(HEADING).expect("the README has a first session").1;
    let section = section.split("\n## ").next().unwrap();
    let mut steps: Vec<Step> = Vec::new();
    let mut in_block = false;
    for line in section.lines() {
        match (in_block, line) {
            (false, "```console") => in_block = true,
            (true, "```") => in_block = false,
            (true, line) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.to_owned(), shown: Vec::new() }),
                (None, Some(step)) if step.command.ends_with('\\') => {
                    step.command.push('\n');
                    step.command.push_str(line);
                }
                (None, Some(step)) => step.shown.push(line.to_owned()),
                (None, None) => panic!("a block begins with a command: {line}"),
            },
            _ => {}
        }
    }
    steps
}

/// Whether a line is what is shown, where an ellipsis stands for any characters.
fn is_shown(shown: &str, line: &str) -> bool {
    let mut parts = shown.split(ELLIPSIS);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[test]
fn an_ellipsis_stands_for_any_characters() {
    assert!(is_shown("a…c", "abc") && is_shown("a…", "a") && is_shown("…c…e", "bcde"));
    assert!(!is_shown("a…c", "abd") && !is_shown("abc", "abcd") && !is_shown("a…b…c", "acb"));
}

#[tokio::test]
async fn the_first_session_goes_as_it_is_shown() {
    goes_as_it_is_shown(Served::alone().await).await;
}

#[tokio::test]
async fn the_first_session_goes_the_same_on_the_cloud_pair() {
    let pair = CloudPair::real_time().await;
    let dir = tempfile::tempdir().unwrap();
    let stores = Stores { leases: pair.leases(), tokens: pair.tokens(), blobs: pair.blobs() };
    goes_as_it_is_shown(Served::start_on(config_in(dir.path()), stores).await).await;
}

async fn goes_as_it_is_shown(served: Served) {
    let curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status().await;
    assert!(
        curl.is_ok_and(|status| status.success()),
        "the README's session needs curl, and there is none on the PATH"
    );
    let address = served.url.strip_prefix("http://").unwrap().to_owned();
    let steps = session();
    assert!(steps.len() >= 9, "{} steps", steps.len());
    let mut script = "exec 2>&1\nexport no_proxy='*'\n".to_owned();
    for step in &steps {
        writeln!(script, "{}\necho; echo '{MARK}'", step.command.replace(ADDRESS, &address)).unwrap();
    }
    let mut bash = Command::new("bash")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the README's session needs bash");
    bash.stdin.take().unwrap().write_all(script.as_bytes()).await.unwrap();
    let output = soon("the session", bash.wait_with_output()).await.unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<&str> = output.split(MARK).collect();
    assert_eq!(printed.len(), steps.len() + 1, "{output}");
    for (step, printed) in steps.iter().zip(printed) {
        let lines: Vec<&str> = printed.trim().lines().collect();
        let shown: Vec<String> = step.shown.iter().map(|line| line.replace(ADDRESS, &address)).collect();
        let agrees =
            lines.len() == shown.len() && shown.iter().zip(&lines).all(|(shown, line)| is_shown(shown, line));
        assert!(
            agrees,
            "$ {}\nis shown to print\n{}\nand prints\n{}",
            step.command,
            shown.join("\n"),
            lines.join("\n")
        );
    }
}
