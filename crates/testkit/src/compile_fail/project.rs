//! The cargo project whose binaries are the cases.
//!
//! It lies below the workspace's target directory and is built into that, with the workspace's profiles and locked
//! versions: what is built for the tests already, `SQLite` above all, is not built again. That is also why it is built
//! and not merely checked: a check shares nothing with the tests, not even what build scripts compile.

use std::{
    error::Error,
    fs::{self, File},
    path::{Path, PathBuf},
};

use cargo_metadata::{Dependency, DependencyKind, Metadata, MetadataCommand, Package, Target};
use toml::{Table, Value};

use super::case::Case;

/// Generated, and its process's own until it is dropped.
#[derive(Debug)]
pub(super) struct Project {
    dir: PathBuf,
    workspace_root: PathBuf,
    target: PathBuf,
    cases: PathBuf,
    /// Another process may check the same cases, for another pair of backends.
    _turn: File,
}

impl Project {
    /// Writes the project of these cases of a crate.
    pub(super) fn create(crate_dir: &Path, cases_dir: &Path, cases: &[Case]) -> Result<Self, Box<dyn Error>> {
        let metadata = MetadataCommand::new()
            .manifest_path(crate_dir.join("Cargo.toml"))
            .no_deps()
            .other_options(["--offline".to_owned()])
            .exec()?;
        let workspace_root = metadata.workspace_root.as_std_path();
        let target = metadata.target_directory.as_std_path();
        let package = package_in(&metadata, crate_dir)?;
        let group = cases_dir.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{}-{group}", package.name);
        let dir = target.join("compile-fail").join(&name);

        fs::create_dir_all(&dir)?;
        let turn = File::create(dir.join("turn"))?;
        turn.lock()?;
        let root = fs::read_to_string(workspace_root.join("Cargo.toml"))?.parse()?;
        fs::write(dir.join("Cargo.toml"), manifest(&name, package, &root, cases)?.to_string())?;
        fs::copy(workspace_root.join("Cargo.lock"), dir.join("Cargo.lock"))?;
        Ok(Self {
            dir,
            workspace_root: workspace_root.to_owned(),
            target: target.to_owned(),
            cases: crate_dir.join(cases_dir),
            _turn: turn,
        })
    }

    pub(super) fn manifest(&self) -> PathBuf {
        self.dir.join("Cargo.toml")
    }

    /// The root of the workspace that the crate belongs to.
    pub(super) fn workspace_root(&self) -> &Path {
        &self.workspace_root
    }

    /// Where the workspace's builds go.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// The name of the case that cargo compiled, if it was one.
    pub(super) fn case_of(&self, target: &Target) -> Option<String> {
        let path = target.src_path.as_std_path();
        let name = path.starts_with(&self.cases).then(|| path.file_stem()).flatten()?;
        Some(name.to_string_lossy().into_owned())
    }
}

fn package_in<'m>(metadata: &'m Metadata, crate_dir: &Path) -> Result<&'m Package, Box<dyn Error>> {
    let manifest = crate_dir.join("Cargo.toml").canonicalize()?;
    let of_crate = |package: &&Package| {
        package.manifest_path.as_std_path().canonicalize().is_ok_and(|path| path == manifest)
    };
    let found = metadata.packages.iter().find(of_crate);
    found.ok_or_else(|| format!("{} is no package of its workspace", crate_dir.display()).into())
}

/// The project's manifest: the crate, what its own sources may name, and a binary for each case.
fn manifest(name: &str, package: &Package, root: &Table, cases: &[Case]) -> Result<Table, Box<dyn Error>> {
    let text = |text: &str| Value::String(text.to_owned());
    let path = |path: &Path| path.to_str().map(text).ok_or("a path that is no UTF-8");

    let about = Table::from_iter([
        ("name".to_owned(), text(name)),
        ("version".to_owned(), text("0.0.0")),
        ("edition".to_owned(), text(package.edition.as_str())),
        ("publish".to_owned(), Value::Boolean(false)),
        ("autobins".to_owned(), Value::Boolean(false)),
    ]);

    let crate_dir = package.manifest_path.parent().ok_or("a manifest that lies nowhere")?;
    let itself = Table::from_iter([("path".to_owned(), path(crate_dir.as_std_path())?)]);
    let mut dependencies = Table::from_iter([(package.name.to_string(), Value::Table(itself))]);
    let named = |dependency: &&Dependency| {
        dependency.kind == DependencyKind::Normal && !dependency.optional && dependency.target.is_none()
    };
    for dependency in package.dependencies.iter().filter(named) {
        let (name, described) = describe(dependency);
        dependencies.insert(name, Value::Table(described));
    }

    let mut binaries = Vec::with_capacity(cases.len());
    for case in cases {
        // Binaries of all projects come to lie in one directory.
        let own = format!("{name}-{}", case.name);
        let binary = [("name".to_owned(), text(&own)), ("path".to_owned(), path(&case.path)?)];
        binaries.push(Value::Table(Table::from_iter(binary)));
    }

    let mut manifest = Table::from_iter([
        ("package".to_owned(), Value::Table(about)),
        ("dependencies".to_owned(), Value::Table(dependencies)),
        ("bin".to_owned(), Value::Array(binaries)),
    ]);
    let resolver = root.get("workspace").and_then(|workspace| workspace.get("resolver"));
    let workspace = resolver.map(|resolver| ("resolver".to_owned(), resolver.clone()));
    manifest.insert("workspace".to_owned(), Value::Table(workspace.into_iter().collect()));
    if let Some(profiles) = root.get("profile") {
        manifest.insert("profile".to_owned(), profiles.clone());
    }
    Ok(manifest)
}

/// A dependency as a manifest has it.
fn describe(dependency: &Dependency) -> (String, Table) {
    let text = |text: &str| Value::String(text.to_owned());
    let features = dependency.features.iter().map(|feature| text(feature)).collect();
    let mut described = Table::from_iter([
        ("version".to_owned(), text(&dependency.req.to_string())),
        ("default-features".to_owned(), Value::Boolean(dependency.uses_default_features)),
        ("features".to_owned(), Value::Array(features)),
    ]);
    if let Some(path) = &dependency.path {
        described.insert("path".to_owned(), text(path.as_str()));
    }
    let Some(rename) = &dependency.rename else { return (dependency.name.clone(), described) };
    described.insert("package".to_owned(), text(&dependency.name));
    (rename.clone(), described)
}
