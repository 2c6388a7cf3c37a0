//! SECURITY.md's table of threats: the ones that have to be there are, and each row names a test that shows what stands against it.
//!
//! That a named test exists is the rule of [`documents`](crate::documents), whatever the table is.

use std::{fmt, path::Path};

use crate::{
    XtaskError,
    documents::{introduces, is_name, links},
    workspace::Workspace,
};

const DOCUMENT: &str = "SECURITY.md";
const SECTION: &str = "## Threats";

/// What a reader looks for by name; a row begins with it.
const THREATS: [&str; 11] = [
    "Two writers",
    "A late writer",
    "A copy that outlives a forget",
    "A stolen disk",
    "A stolen or rewound lease table",
    "A stolen container",
    "Hostile tenant SQL",
    "A hostile client",
    "A curious neighbour",
    "Clock trouble",
    "A replayed backup",
];

/// What is wrong with the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// A threat has no row.
    Missing(&'static str),
    /// A row names no test.
    Unshown {
        /// The line in the document.
        line: usize,
        /// What the row begins with.
        threat: String,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(threat) => write!(f, "{DOCUMENT} has no row that begins with **{threat}**"),
            Self::Unshown { line, threat } => {
                write!(
                    f,
                    "{DOCUMENT}:{line}: `{threat}` names no test: link one by its name, such as [`a_name`](its/file.rs)"
                )
            }
        }
    }
}

/// Everything that is wrong with it.
pub fn breaches(workspace: &Workspace) -> Result<Vec<Breach>, XtaskError> {
    let text = workspace.text(DOCUMENT.as_ref())?.unwrap_or_default();
    Ok(judge(&text, |file, test| introduces(&workspace.root().join(file), test)))
}

fn judge(text: &str, is_there: impl Fn(&str, &str) -> bool) -> Vec<Breach> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| *line != SECTION).skip(1);
    let rows: Vec<_> = lines
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter(|(_, line)| line.starts_with("| ") && !line.starts_with("| threat "))
        .collect();
    let missing = THREATS.into_iter().filter(|threat| {
        let beginning = format!("| **{threat}**");
        !rows.iter().any(|(_, row)| row.starts_with(&beginning))
    });
    let mut found: Vec<_> = missing.map(Breach::Missing).collect();
    for (index, row) in rows {
        let shown = links(row).any(|(name, target)| {
            let name = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
            name.is_some_and(|name| is_name(name) && is_source(target) && is_there(target, name))
        });
        if !shown {
            let threat = row.split('|').nth(1).unwrap_or_default().trim().chars().take(60).collect();
            found.push(Breach::Unshown { line: index + 1, threat });
        }
    }
    found
}

fn is_source(target: &str) -> bool {
    Path::new(target).extension().is_some_and(|extension| extension == "rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threat_has_a_row_and_a_row_names_a_test_that_is_there() {
        let shown = |threat: &str| format!("| **{threat}** | this | [`a_test`](a.rs) |\n");
        let mut text =
            format!("{SECTION}\n\n| threat | what stands against it | shown by |\n|---|---|---|\n");
        text.extend(THREATS[1..].iter().map(|threat| shown(threat)));
        let there = |file: &str, test: &str| (file, test) == ("a.rs", "a_test");
        assert_eq!(judge(&text, there), [Breach::Missing("Two writers")]);
        text += &shown(THREATS[0]);
        assert_eq!(judge(&text, there), []);
        for unshown in ["[a test](a.rs)", "[`b_test`](a.rs)", "[`a_test`](b.rs)", "a_test"] {
            let text = format!("{text}| A dog | a lead | {unshown} |\n");
            let threat = "A dog".to_owned();
            assert_eq!(judge(&text, there), [Breach::Unshown { line: 16, threat }], "{unshown}");
        }
        let text = format!("{text}\n## What is not\n\n| A cat | nothing | nobody |\n");
        assert_eq!(judge(&text, there), [], "another section's table is another matter");
    }
}
