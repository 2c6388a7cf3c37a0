//! No `unsafe` outside of a named file, and there is none that is named: the lint forbids it, every crate takes the lint, and no source
//! has the word.
//!
//! The compiler holds the lint where it is set. That it is set, for each crate and whatever a crate is built for, is what is held here.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};

use crate::{XtaskError, workspace::Workspace};

/// The files that may have it, from the root of the workspace.
const ALLOWED: [&str; 0] = [];

/// Where the rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// The workspace does not forbid it.
    NotForbidden,
    /// A crate does not take the workspace's lints.
    NoLints(PathBuf),
    /// A source has it.
    Unsafe {
        /// The file.
        file: PathBuf,
        /// The line in it.
        line: usize,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotForbidden => {
                write!(f, "Cargo.toml: [workspace.lints.rust] has no `unsafe_code = \"forbid\"`")
            }
            Self::NoLints(manifest) => {
                write!(
                    f,
                    "{}: it does not take the workspace's lints: `[lints] workspace = true`",
                    manifest.display()
                )
            }
            Self::Unsafe { file, line } => write!(f, "{}:{line}: `unsafe`", file.display()),
        }
    }
}

/// Every place.
pub fn breaches(workspace: &Workspace) -> Result<Vec<Breach>, XtaskError> {
    let mut found = Vec::new();
    for file in workspace.files()? {
        let is_manifest = file.file_name().is_some_and(|name| name == "Cargo.toml");
        let is_source = file.extension().is_some_and(|extension| extension == "rs");
        if !is_manifest && !is_source {
            continue;
        }
        let text = workspace.text(&file)?.unwrap_or_default();
        if is_manifest {
            found.extend(in_manifest(&file, &text));
        } else if !ALLOWED.iter().any(|allowed| file == Path::new(allowed)) {
            let lines = lines_with_unsafe(&text);
            found.extend(lines.into_iter().map(|line| Breach::Unsafe { file: file.clone(), line }));
        }
    }
    Ok(found)
}

fn in_manifest(file: &Path, text: &str) -> Option<Breach> {
    let Ok(manifest) = toml::from_str::<toml::Table>(text) else { return None };
    let at = |path: &[&str]| {
        let mut value = manifest.get(*path.first()?)?;
        for name in path.get(1..)? {
            value = value.get(*name)?;
        }
        Some(value.clone())
    };
    if manifest.contains_key("workspace") {
        let level = at(&["workspace", "lints", "rust", "unsafe_code"]);
        return (level != Some("forbid".into())).then_some(Breach::NotForbidden);
    }
    let takes = at(&["lints", "workspace"]) == Some(true.into());
    (manifest.contains_key("package") && !takes).then(|| Breach::NoLints(file.to_path_buf()))
}

/// The lines with the keyword; it is none in a text, a comment or a longer name.
fn lines_with_unsafe(text: &str) -> Vec<usize> {
    // Most sources do not even have the letters. What is no Rust is the house rules' to find.
    if !text.contains("unsafe") {
        return Vec::new();
    }
    let Ok(tokens) = text.parse::<TokenStream>() else { return Vec::new() };
    let (mut found, mut waiting) = (Vec::new(), vec![tokens]);
    while let Some(tokens) = waiting.pop() {
        for token in tokens {
            match token {
                TokenTree::Group(group) => waiting.push(group.stream()),
                TokenTree::Ident(word) if word == "unsafe" => found.push(word.span().start().line),
                _ => {}
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyword_is_found_wherever_it_stands_and_nothing_else_is() {
        let text = "// unsafe\nfn f() { let unsafe_code = \"unsafe\"; }\nmod m { fn g() { unsafe { h() } } }\nunsafe fn h() {}\n";
        assert_eq!(lines_with_unsafe(text), [3, 4]);
    }

    #[test]
    fn the_workspace_forbids_it_and_each_crate_takes_that() {
        let judge = |text: &str| in_manifest(Path::new("a/Cargo.toml"), text);
        assert_eq!(judge("[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"), None);
        for text in ["[workspace]\n", "[workspace.lints.rust]\nunsafe_code = \"deny\"\n"] {
            assert_eq!(judge(text), Some(Breach::NotForbidden), "{text}");
        }
        assert_eq!(judge("[package]\nname = \"a\"\n[lints]\nworkspace = true\n"), None);
        for text in ["[package]\nname = \"a\"\n", "[package]\nname = \"a\"\n[lints]\nworkspace = false\n"] {
            assert_eq!(judge(text), Some(Breach::NoLints("a/Cargo.toml".into())), "{text}");
        }
    }
}
