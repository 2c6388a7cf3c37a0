//! What a bill of materials is made of: what cargo says of the binary's dependencies, and what lies in their sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use cargo_metadata::{Metadata, MetadataCommand, Package, PackageId};
use serde::Deserialize;

use super::{PACKAGE, TARGET};
use crate::{XtaskError, tool::Cargo, workspace::Workspace};

/// A crate by name and version; the registry has one of each.
pub(super) type Name = (String, String);

/// A crate that has a part in the binary.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) version: String,
    /// Its licence expression.
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    /// The digest of what was downloaded; none for a crate of this workspace.
    pub(super) sha256: Option<String>,
    /// In the binary, and not only in its making.
    pub(super) is_linked: bool,
    /// A library in another language whose sources the crate carries, by name and version.
    pub(super) bundled: Option<(&'static str, String)>,
    /// What it needs of the other parts.
    pub(super) needs: BTreeSet<Name>,
}

/// Everything that a bill of materials says.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) parts: BTreeMap<Name, Part>,
    /// The commit's time, where there is a commit.
    pub(super) at: Option<String>,
    pub(super) rustc: String,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Reads all of it.
pub(super) fn read(workspace: &Workspace) -> Result<Sources, XtaskError> {
    let cargo = Cargo::of(workspace);
    let linked = names(&cargo, "normal,no-proc-macro")?;
    let making = names(&cargo, "normal,build")?;
    let metadata = MetadataCommand::new()
        .current_dir(workspace.root())
        .other_options(["--locked", "--filter-platform", TARGET].map(str::to_owned))
        .exec()?;
    let digests = digests(workspace)?;
    let edges = edges(&metadata);
    let mut parts = BTreeMap::new();
    for package in &metadata.packages {
        let name = name_of(package);
        if !making.contains(&name) {
            continue;
        }
        let needs = edges.get(&package.id).into_iter().flatten();
        let part = Part {
            license: package.license.clone(),
            repository: package.repository.clone(),
            sha256: digests.get(&name).cloned(),
            is_linked: linked.contains(&name),
            bundled: bundled(package)?,
            needs: needs.filter(|need| making.contains(*need)).cloned().collect(),
            name: name.0.clone(),
            version: name.1.clone(),
        };
        parts.insert(name, part);
    }
    Ok(Sources { parts, at: commit_time(workspace.root()), rustc: rustc() })
}

fn name_of(package: &Package) -> Name {
    (package.name.to_string(), package.version.to_string())
}

/// The crates along these edges from the binary's, as the build resolves them.
fn names(cargo: &Cargo<'_>, edges: &str) -> Result<BTreeSet<Name>, XtaskError> {
    let tree = ["tree", "--locked", "--package", PACKAGE, "--target", TARGET, "--prefix", "none"];
    let said = cargo.read(&[tree.as_slice(), &["--format", "{p}", "--edges", edges]].concat())?;
    Ok(String::from_utf8_lossy(&said).lines().filter_map(name_in).collect())
}

/// `name v1.2.3 (...)`.
fn name_in(line: &str) -> Option<Name> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?);
    Some((name.to_owned(), version.strip_prefix('v')?.to_owned()))
}

/// What each crate needs, without what only its tests do.
fn edges(metadata: &Metadata) -> BTreeMap<PackageId, BTreeSet<Name>> {
    let names: BTreeMap<_, _> =
        metadata.packages.iter().map(|package| (&package.id, name_of(package))).collect();
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    nodes
        .map(|node| {
            let needs = node.deps.iter().filter(|need| {
                need.dep_kinds.iter().any(|kind| kind.kind != cargo_metadata::DependencyKind::Development)
            });
            (node.id.clone(), needs.filter_map(|need| names.get(&need.pkg).cloned()).collect())
        })
        .collect()
}

fn digests(workspace: &Workspace) -> Result<BTreeMap<Name, String>, XtaskError> {
    let path = workspace.root().join("Cargo.lock");
    let text = fs::read_to_string(&path).map_err(|source| XtaskError::Read { path: path.clone(), source })?;
    let lock: Lock = toml::from_str(&text).map_err(|source| XtaskError::Lock(Box::new(source)))?;
    let digests = lock.package.into_iter();
    Ok(digests.filter_map(|locked| Some(((locked.name, locked.version), locked.checksum?))).collect())
}

/// The C library that a crate carries: an advisory is about that one's name and version, not the crate's.
fn bundled(package: &Package) -> Result<Option<(&'static str, String)>, XtaskError> {
    match package.name.as_str() {
        "libsqlite3-sys" => {
            let header = package.manifest_path.with_file_name("sqlite3").join("sqlite3.h");
            let text = fs::read_to_string(&header)
                .map_err(|source| XtaskError::Read { path: header.clone().into(), source })?;
            let version = sqlite_version(&text).ok_or(XtaskError::NoVersion { path: header.into() })?;
            Ok(Some(("sqlite", version)))
        }
        "zstd-sys" => {
            let build = package.version.build.as_str();
            let version = build.strip_prefix("zstd.").map(str::to_owned);
            let path = package.manifest_path.clone().into();
            Ok(Some(("zstd", version.ok_or(XtaskError::NoVersion { path })?)))
        }
        _ => Ok(None),
    }
}

/// The version in `#define SQLITE_VERSION "3.51.0"`.
fn sqlite_version(header: &str) -> Option<String> {
    let line = header.lines().find(|line| line.starts_with("#define SQLITE_VERSION "))?;
    Some(line.split('"').nth(1)?.to_owned())
}

/// `None` where the sources are no checkout.
fn commit_time(root: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%cI"]).current_dir(root);
    let said = git.output().ok().filter(|said| said.status.success())?;
    let time = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    (!time.is_empty()).then_some(time)
}

fn rustc() -> String {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(program).arg("--version").output().map(|said| said.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_tree_names_a_crate() {
        let name = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(name_in("bytes v1.12.2"), name("bytes", "1.12.2"));
        assert_eq!(name_in("serde_derive v1.0.228 (proc-macro) (*)"), name("serde_derive", "1.0.228"));
        assert_eq!(name_in("zstd-sys v2.1.3+zstd.1.5.7"), name("zstd-sys", "2.1.3+zstd.1.5.7"));
        assert_eq!(name_in(""), None);
    }

    #[test]
    fn sqlites_version_is_read_where_it_is_defined() {
        let header = "#define SQLITE_VERSION_NUMBER 3051000\n#define SQLITE_VERSION        \"3.51.0\"\n";
        assert_eq!(sqlite_version(header).unwrap(), "3.51.0");
        assert_eq!(sqlite_version("#define SQLITE_VERSION_NUMBER 3051000\n"), None);
    }
}
