//! The documents' links: a reader who follows one arrives.
//!
//! A link to a file must find it. A link whose text is code and whose target is a Rust file, such as
//! `` [`h3b_…`](crates/…/handoff.rs) ``, must also find an item of that name there; the ellipsis stands for the rest of it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use crate::{XtaskError, workspace::Workspace};

/// What introduces a name in Rust.
const INTRODUCERS: [&str; 8] =
    ["fn ", "struct ", "enum ", "trait ", "type ", "mod ", "const ", "macro_rules! "];

/// A link that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    document: PathBuf,
    line: usize,
    target: String,
    item: Option<String>,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { document, line, target, item } = self;
        write!(f, "{}:{line}: ", document.display())?;
        match item {
            Some(item) => write!(f, "{target} has no item `{item}`"),
            None => write!(f, "there is no {target}"),
        }
    }
}

/// Every link of the workspace's Markdown that leads nowhere.
pub fn breaches(workspace: &Workspace) -> Result<Vec<Breach>, XtaskError> {
    let mut found = Vec::new();
    for document in workspace.files()? {
        if document.extension().is_some_and(|extension| extension == "md") {
            let text = workspace.text(&document)?.unwrap_or_default();
            found.extend(broken_links(workspace.root(), &document, &text));
        }
    }
    Ok(found)
}

fn broken_links(root: &Path, document: &Path, text: &str) -> Vec<Breach> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for (shown, target) in links(line) {
            let breach = |item| Breach {
                document: document.to_path_buf(),
                line: index + 1,
                target: target.to_owned(),
                item,
            };
            let file = target.split('#').next().unwrap_or(target);
            // An anchor within the document, or an address that is not ours to check.
            if file.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let path = root.join(document.parent().unwrap_or(Path::new(""))).join(file);
            let item = shown.strip_prefix('`').and_then(|shown| shown.strip_suffix('`'));
            match (
                path.exists(),
                item.filter(|_| path.extension().is_some_and(|extension| extension == "rs")),
            ) {
                (false, _) => found.push(breach(None)),
                (true, Some(item)) if is_name(item) && !introduces(&path, item) => {
                    found.push(breach(Some(item.to_owned())));
                }
                (true, _) => {}
            }
        }
    }
    found
}

/// The links of a line as (text, target).
pub(crate) fn links(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices("](").filter_map(|(at, _)| {
        let (before, after) = (line.get(..at)?, line.get(at + 2..)?);
        let shown = before.get(before.rfind('[')? + 1..)?;
        let target = after.get(..after.find(')')?)?;
        Some((shown, target))
    })
}

/// Whether a link's text is the name of one item, and not a path or a call.
pub(crate) fn is_name(text: &str) -> bool {
    text.trim_end_matches('…').chars().all(|character| character.is_alphanumeric() || character == '_')
}

/// Whether the source at `path` has an item of this name; an ellipsis at its end stands for the rest of it.
pub(crate) fn introduces(path: &Path, item: &str) -> bool {
    let Ok(source) = fs::read_to_string(path) else { return false };
    let name = item.trim_end_matches('…');
    INTRODUCERS.iter().any(|introducer| {
        source.match_indices(&format!("{introducer}{name}")).any(|(at, found)| {
            let next = source.get(at + found.len()..).and_then(|rest| rest.chars().next());
            item.ends_with('…') || next.is_none_or(|next| !(next.is_alphanumeric() || next == '_'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str) -> Vec<(String, Option<String>)> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        fs::write(root.path().join("gate.rs"), "pub(crate) struct Gate;\nasync fn f2_refuses_it() {}\n")
            .unwrap();
        broken_links(root.path(), Path::new("docs/a.md"), text)
            .into_iter()
            .map(|breach| (breach.target, breach.item))
            .collect()
    }

    #[test]
    fn a_link_finds_its_file_from_where_the_document_lies() {
        assert_eq!(judge("[the gate](../gate.rs) and [far](https://example.org/x) and [below](#below)"), []);
        assert_eq!(judge("[a](../gate.rs), [b](gate.rs#x)"), [("gate.rs#x".to_owned(), None)]);
    }

    #[test]
    fn a_link_with_a_name_finds_the_item() {
        assert_eq!(judge("[`Gate`](../gate.rs) [`f2_refuses_it`](../gate.rs) [`f2_…`](../gate.rs)"), []);
        let missing = |item: &str| ("../gate.rs".to_owned(), Some(item.to_owned()));
        assert_eq!(
            judge("| [`Gat`](../gate.rs) | [`f2_`](../gate.rs) | [`f3_…`](../gate.rs) |"),
            [missing("Gat"), missing("f2_"), missing("f3_…")]
        );
    }

    #[test]
    fn code_blocks_have_no_links() {
        assert_eq!(judge("```console\n$ echo [a](b)\n```\n"), []);
    }
}
