//! The rules of the house over its source text: short files, files and types named by what they are, `lib.rs` and
//! `mod.rs` without logic, and nobody's own machine in what everybody reads.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use syn::{Attribute, Item, spanned::Spanned};

use crate::{XtaskError, workspace::Workspace};

/// The lines that a source file may have, its tests not counted. Files of 500 are the aim; this is where it stops.
const LINES_MAX: usize = 700;

/// Names that say nothing about what they name.
const EMPTY_NAMES: [&str; 8] =
    ["util", "utils", "helper", "helpers", "common", "commons", "manager", "managers"];

/// Where people and their machines keep a checkout.
const OWN_PLACES: [&str; 3] = ["/home/", "/root/", "/Users/"];

/// A broken rule, with the file that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    file: PathBuf,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Long { lines: usize },
    EmptyName { name: String },
    Logic { line: usize },
    OwnPlace { line: usize, place: String },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.what {
            What::Long { lines } => {
                write!(
                    f,
                    "{file} has {lines} lines without its tests, {LINES_MAX} at the most: give a part of it a file of its own"
                )
            }
            What::EmptyName { name } => write!(f, "{file}: `{name}` says nothing: name it by what it does"),
            What::Logic { line } => {
                write!(f, "{file}:{line}: this file is for documentation, modules and exports only")
            }
            What::OwnPlace { line, place } => {
                write!(f, "{file}:{line}: `{place}` is a place on somebody's own machine")
            }
        }
    }
}

/// Every broken rule in the workspace's files.
pub fn breaches(workspace: &Workspace) -> Result<Vec<Breach>, XtaskError> {
    let mut breaches = Vec::new();
    for file in workspace.files()? {
        let Some(text) = workspace.text(&file)? else { continue };
        breaches.extend(own_places(&file, &text, workspace.root()));
        if is_source(&file) {
            let parsed =
                syn::parse_file(&text).map_err(|source| XtaskError::Parse { path: file.clone(), source })?;
            breaches.extend(source_breaches(&file, &text, &parsed));
        }
    }
    Ok(breaches)
}

/// `crates/<crate>/src/**.rs`.
fn is_source(file: &Path) -> bool {
    let mut components = file.components().map(Component::as_os_str);
    file.extension().is_some_and(|extension| extension == "rs")
        && components.next().is_some_and(|first| first == "crates")
        && components.nth(1).is_some_and(|third| third == "src")
}

fn source_breaches(file: &Path, text: &str, parsed: &syn::File) -> Vec<Breach> {
    let breach = |what| Breach { file: file.to_path_buf(), what };
    let mut found = Vec::new();

    let lines = text.lines().count() - parsed.items.iter().map(lines_for_tests).sum::<usize>();
    if lines > LINES_MAX && !is_for_tests(&parsed.attrs) {
        found.push(breach(What::Long { lines }));
    }

    let under_src = file.iter().skip(3).map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned());
    let names = under_src.chain(parsed.items.iter().flat_map(names_of));
    found.extend(names.filter(|name| is_empty_name(name)).map(|name| breach(What::EmptyName { name })));

    if file.file_name().is_some_and(|name| name == "lib.rs" || name == "mod.rs") {
        let logic = parsed.items.iter().find(|item| !is_outline(item));
        found.extend(logic.map(|item| breach(What::Logic { line: item.span().start().line })));
    }
    found
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// The lines of an item that is compiled for tests only, its attributes and documentation included.
fn lines_for_tests(item: &Item) -> usize {
    match item {
        Item::Mod(module) if is_for_tests(&module.attrs) => {
            let span = module.span();
            span.end().line - span.start().line + 1
        }
        _ => 0,
    }
}

/// The names of a module-level item and of what lies in it, if it is a module or a type.
fn names_of(item: &Item) -> Vec<String> {
    match item {
        Item::Mod(module) => {
            let within = module.content.iter().flat_map(|(_, items)| items).flat_map(names_of);
            within.chain([module.ident.to_string()]).collect()
        }
        Item::Enum(item) => vec![item.ident.to_string()],
        Item::Struct(item) => vec![item.ident.to_string()],
        Item::Trait(item) => vec![item.ident.to_string()],
        Item::Type(item) => vec![item.ident.to_string()],
        _ => Vec::new(),
    }
}

/// Whether one of the words of a `snake_case` or `CamelCase` name is empty of meaning.
fn is_empty_name(name: &str) -> bool {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if character == '_' || character.is_uppercase() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (character.is_alphanumeric(), words.last_mut()) {
            word.extend(character.to_lowercase());
        }
    }
    words.iter().any(|word| EMPTY_NAMES.contains(&word.as_str()))
}

/// Whether an item only says what there is: a module in a file of its own (or of tests), or an export.
fn is_outline(item: &Item) -> bool {
    match item {
        Item::Mod(module) => module.content.is_none() || is_for_tests(&module.attrs),
        Item::Use(_) | Item::ExternCrate(_) => true,
        _ => false,
    }
}

fn own_places(file: &Path, text: &str, root: &Path) -> Vec<Breach> {
    let root = root.display().to_string();
    // A root of one segment, such as `/src`, is no one's own.
    let root = (root.matches('/').count() > 1).then_some(root);
    let breach = |line, place: &str| Breach {
        file: file.to_path_buf(),
        what: What::OwnPlace { line, place: place.to_owned() },
    };
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = OWN_PLACES.into_iter().find(|place| names_place(line, place));
        let place = place.or_else(|| root.as_deref().filter(|root| line.contains(root)));
        found.extend(place.map(|place| breach(index + 1, place)));
    }
    // The list above is where the places are named.
    if file.ends_with("crates/xtask/src/house.rs") { Vec::new() } else { found }
}

/// Whether `place` stands in `line` as the beginning of a path, and not in the middle of one.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|before| !(before.is_alphanumeric() || "._-/>}".contains(before)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(file: &str, text: &str) -> Vec<What> {
        let parsed = syn::parse_file(text).unwrap();
        source_breaches(Path::new(file), text, &parsed).into_iter().map(|breach| breach.what).collect()
    }

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let body = "const A: u8 = 0;\n".repeat(LINES_MAX);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{body}}}\n");
        assert_eq!(judge("crates/x/src/a.rs", &format!("{body}{tests}")), []);
        let lines = LINES_MAX + 1;
        assert_eq!(judge("crates/x/src/a.rs", &format!("{body}\n{tests}")), [What::Long { lines }]);
    }

    #[test]
    fn files_and_types_are_named_by_what_they_do() {
        let named = |name: &str| What::EmptyName { name: name.to_owned() };
        assert_eq!(judge("crates/x/src/string_utils.rs", ""), [named("string_utils")]);
        assert_eq!(judge("crates/x/src/common/a.rs", ""), [named("common")]);
        assert_eq!(judge("crates/x/src/a.rs", "pub struct LeaseManager;"), [named("LeaseManager")]);
        assert_eq!(judge("crates/x/src/a.rs", "mod a { mod helpers {} }"), [named("helpers")]);
        assert_eq!(judge("crates/x/src/utility.rs", "pub struct Commonwealth; fn last_common() {}"), []);
    }

    #[test]
    fn an_outline_has_no_logic() {
        let outline = "//! What this is.\nmod a;\npub use a::B;\n#[cfg(test)]\nmod tests { fn f() {} }\n";
        assert_eq!(judge("crates/x/src/lib.rs", outline), []);
        let logic = format!("{outline}\nfn f() {{}}\n");
        assert_eq!(judge("crates/x/src/a/mod.rs", &logic), [What::Logic { line: 7 }]);
        assert_eq!(judge("crates/x/src/a.rs", &logic), []);
    }

    #[test]
    fn a_path_on_somebodys_machine_is_found_where_it_begins() {
        let judge = |line: &str| own_places(Path::new("a.md"), line, Path::new("/srv/joes/checkout")).len();
        assert_eq!(judge("see `/home/joe/x`"), 1);
        assert_eq!(judge("see /srv/joes/checkout/a.rs"), 1);
        assert_eq!(judge("<state root>/home/x, {base}/root/x, /srv/joes/other"), 0);
    }

    #[test]
    fn only_what_is_under_src_is_source() {
        assert!(is_source(Path::new("crates/lease/src/sqlite/store.rs")));
        assert!(!is_source(Path::new("crates/lease/tests/it/main.rs")));
        assert!(!is_source(Path::new("crates/lease/src/schema.sql")));
    }
}
