//! A case: what its file states, and whether the compiler answered that.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::diagnostic::Diagnostic;

/// What introduces a statement about what the compiler answers.
const DIRECTIVE: &str = "//@";

/// One file.
#[derive(Debug)]
pub(super) struct Case {
    /// The file's name without its extension.
    pub(super) name: String,
    pub(super) path: PathBuf,
    expected: Expected,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Compiles,
    /// At least one.
    Fails(Vec<Stated>),
}

/// An error that a case states.
#[derive(Debug, PartialEq, Eq)]
struct Stated {
    /// Where, counted from 1.
    line: usize,
    /// Such as `E0599`; `None` for the compiler's errors that have no code.
    code: Option<String>,
    /// What the error's text has in it.
    text: String,
}

/// What the compiler said about a case.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) compiled: bool,
    pub(super) errors: Vec<Diagnostic>,
}

impl Case {
    /// The cases of a directory, in the order of their names.
    ///
    /// # Panics
    /// If one cannot be read or states nothing; if none fails, or none compiles.
    pub(super) fn all_in(dir: &Path) -> Vec<Self> {
        let entries =
            fs::read_dir(dir).unwrap_or_else(|error| panic!("cannot list {}: {error}", dir.display()));
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .collect();
        paths.sort();
        let cases: Vec<Self> = paths
            .into_iter()
            .map(|path| {
                let text = fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
                let expected =
                    Expected::parse(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                Self { name, path, expected }
            })
            .collect();
        let compile = cases.iter().filter(|case| case.expected == Expected::Compiles).count();
        assert!(compile > 0, "no case in {} compiles, so that none proves anything", dir.display());
        assert!(compile < cases.len(), "no case in {} fails to compile", dir.display());
        cases
    }

    /// What is not as the case states it.
    pub(super) fn judge(&self, outcome: &Outcome) -> Vec<String> {
        let name = &self.name;
        let errors: Vec<&Diagnostic> = outcome.errors.iter().filter(|error| is_of_code(error)).collect();
        let stated = match &self.expected {
            Expected::Compiles if outcome.compiled => return Vec::new(),
            Expected::Compiles => {
                let said: String = errors.iter().map(ToString::to_string).collect();
                return vec![format!("{name}: does not compile, and states that it does\n{said}")];
            }
            Expected::Fails(_) if outcome.compiled => {
                return vec![format!("{name}: compiles, and states that it does not")];
            }
            Expected::Fails(_) if errors.is_empty() => return vec![format!("{name}: was not compiled")],
            Expected::Fails(stated) => stated,
        };
        let missing = stated
            .iter()
            .filter(|stated| !errors.iter().any(|error| stated.is_said_by(error)))
            .map(|stated| {
                let said: String = errors
                    .iter()
                    .filter(|error| stands_in(error, stated.line))
                    .map(ToString::to_string)
                    .collect();
                let said = if said.is_empty() { "nothing".into() } else { said };
                format!("{name}: line {}: expected {}\nfound {said}", stated.line, stated.shown())
            });
        let others = errors
            .iter()
            .filter(|error| stated.iter().all(|stated| stated.code.as_deref() != code_of(error)))
            .map(|error| format!("{name}: an error of a kind that it does not state\n{error}"));
        missing.chain(others).collect()
    }
}

impl Expected {
    fn parse(text: &str) -> Result<Self, String> {
        let mut compiles = false;
        let mut stated = Vec::new();
        let mut above = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let Some(directive) = line.trim_start().strip_prefix(DIRECTIVE) else {
                let at_this_line = |(code, text)| Stated { line: index + 1, code, text };
                stated.extend(above.drain(..).map(at_this_line));
                continue;
            };
            let directive = directive.trim();
            if directive == "compiles" {
                compiles = true;
            } else {
                let error = parse_error(directive)
                    .ok_or_else(|| format!("line {}: `{directive}` states nothing", index + 1))?;
                above.push(error);
            }
        }
        match (compiles, stated.is_empty()) {
            _ if !above.is_empty() => Err("the last line states an error of the line below it".into()),
            (true, true) => Ok(Self::Compiles),
            (false, false) => Ok(Self::Fails(stated)),
            (true, false) => Err("states errors, and that it compiles".into()),
            (false, true) => Err(format!("states neither `{DIRECTIVE} error: …` nor `{DIRECTIVE} compiles`")),
        }
    }
}

/// The code and the text of `error[E0599]: no method`, as the compiler spells it, or `error: lifetime`.
fn parse_error(directive: &str) -> Option<(Option<String>, String)> {
    let (code, text) = directive.strip_prefix("error")?.split_once(": ")?;
    let code = match code {
        "" => None,
        code => Some(code.strip_prefix('[')?.strip_suffix(']')?.to_owned()),
    };
    (!text.is_empty()).then(|| (code, text.to_owned()))
}

impl Stated {
    fn is_said_by(&self, error: &Diagnostic) -> bool {
        code_of(error) == self.code.as_deref()
            && error.message.contains(&self.text)
            && stands_in(error, self.line)
    }

    fn shown(&self) -> String {
        let code = self.code.as_ref().map_or(String::new(), |code| format!("[{code}]"));
        format!("error{code}: {}", self.text)
    }
}

/// Whether an error is about the code, and not the compiler's closing line that counts them.
fn is_of_code(error: &Diagnostic) -> bool {
    error.code.is_some() || !error.spans.is_empty()
}

fn code_of(error: &Diagnostic) -> Option<&str> {
    error.code.as_ref().map(|code| code.code.as_str())
}

fn stands_in(error: &Diagnostic, line: usize) -> bool {
    error.spans.iter().any(|span| span.is_primary && (span.line_start..=span.line_end).contains(&line))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FAILS: &str =
        "fn main() {\n    //@ error[E0599]: no method named `clone`\n    //@ error: lifetime\n    a();\n}\n";

    fn case(text: &str) -> Case {
        Case { name: "case".into(), path: "case.rs".into(), expected: Expected::parse(text).unwrap() }
    }

    fn error(code: Option<&str>, text: &str, line: Option<usize>) -> Diagnostic {
        let span = |line: usize| {
            json!({"file_name": "case.rs", "byte_start": 0, "byte_end": 0, "line_start": line, "line_end": line,
                "column_start": 1, "column_end": 2, "is_primary": true, "text": [], "label": null,
                "suggested_replacement": null, "suggestion_applicability": null, "expansion": null})
        };
        let spans: Vec<_> = line.map(span).into_iter().collect();
        let code = code.map(|code| json!({"code": code, "explanation": null}));
        let said = json!({"message": text, "code": code, "level": "error", "spans": spans, "children": [],
            "rendered": text});
        serde_json::from_value(said).unwrap()
    }

    fn failed(errors: Vec<Diagnostic>) -> Outcome {
        Outcome { compiled: false, errors }
    }

    fn as_stated() -> Vec<Diagnostic> {
        vec![
            error(Some("E0599"), "no method named `clone` found", Some(4)),
            error(None, "lifetime may not live long enough", Some(4)),
            error(None, "aborting due to 2 previous errors", None),
        ]
    }

    #[test]
    fn what_a_case_states_is_for_the_line_below() {
        let stated = |code: Option<&str>, text: &str| Stated {
            line: 4,
            code: code.map(str::to_owned),
            text: text.to_owned(),
        };
        let expected = vec![stated(Some("E0599"), "no method named `clone`"), stated(None, "lifetime")];
        assert_eq!(case(FAILS).expected, Expected::Fails(expected));
        assert_eq!(case("//@ compiles\nfn main() {}\n").expected, Expected::Compiles);
    }

    #[test]
    fn a_case_that_states_nothing_clear_is_refused() {
        for text in [
            "fn main() {}\n",
            "//@ compiles\n//@ error: a\nfn main() {}\n",
            "fn main() {}\n//@ error: a\n",
            "//@ error[E0599] no colon\nfn main() {}\n",
            "//@ error[E0599: no bracket\nfn main() {}\n",
            "//@ error: \nfn main() {}\n",
            "//@ fails\nfn main() {}\n",
        ] {
            assert!(Expected::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_case_holds_that_fails_as_it_states_or_compiles_as_it_states() {
        assert_eq!(case(FAILS).judge(&failed(as_stated())), Vec::<String>::new());
        let compiled = Outcome { compiled: true, errors: Vec::new() };
        assert_eq!(case("//@ compiles\n").judge(&compiled), Vec::<String>::new());
    }

    #[test]
    fn a_case_that_does_anything_else_is_told() {
        let compiled = Outcome { compiled: true, errors: Vec::new() };
        assert_eq!(case(FAILS).judge(&compiled), ["case: compiles, and states that it does not"]);
        assert_eq!(case(FAILS).judge(&Outcome::default()), ["case: was not compiled"]);
        let broken = failed(vec![error(Some("E0432"), "unresolved import", Some(1))]);
        let told = case("//@ compiles\n").judge(&broken);
        assert!(told[0].contains("does not compile") && told[0].contains("unresolved import"), "{told:?}");

        for (index, wrong, expected) in [
            (0, error(Some("E0599"), "no method named `take`", Some(4)), "expected error[E0599]: no method"),
            (
                0,
                error(Some("E0599"), "no method named `clone` found", Some(3)),
                "line 4: expected error[E0599]",
            ),
            (
                1,
                error(Some("E0310"), "lifetime of another kind", Some(4)),
                "line 4: expected error: lifetime",
            ),
            (2, error(Some("E0432"), "unresolved import", Some(1)), "a kind that it does not state"),
        ] {
            let mut errors = as_stated();
            errors[index] = wrong;
            let told = case(FAILS).judge(&failed(errors)).join("\n");
            assert!(told.contains(expected), "{told}");
        }
    }
}
