//! `cargo xtask sbom`: the binary's bill of materials, as `CycloneDX` JSON. A release attaches it beside the binary.
//!
//! What is linked into the binary is what `cargo tree` says of its normal dependencies, since that resolves features as the build does;
//! procedural macros and what build scripts use took part in the build and are listed as excluded from the result. The same sources
//! write the same document: it holds no time but the commit's, and nothing of this machine. Whatever is written is held to its schema.

mod document;
mod sources;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    XtaskError,
    python::{Environment, Tools, run_to_its_end},
    workspace::Workspace,
};

const TOOLS: Tools = Tools {
    name: "sbom-schema",
    purpose: "the check of the bill of materials by its schema",
    pinned: "integration/sbom/requirements.txt",
};

/// The package whose binary it is.
const PACKAGE: &str = "leasehold";

/// The system of the release's binary.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Writes it to `output`, else below the target directory, holds it to its schema and answers where.
pub(crate) fn write(workspace: &Workspace, output: Option<&Path>) -> Result<PathBuf, XtaskError> {
    let path = output.map_or_else(
        || workspace.target().join("sbom").join(format!("{PACKAGE}.cdx.json")),
        Path::to_path_buf,
    );
    let bill = document::of(&sources::read(workspace)?);
    let text = format!("{bill:#}\n");
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)
            .map_err(|source| XtaskError::Write { path: directory.to_path_buf(), source })?;
    }
    fs::write(&path, text).map_err(|source| XtaskError::Write { path: path.clone(), source })?;
    let python = Environment::ready(workspace, TOOLS)?;
    let mut check = python.command(&["integration/sbom/valid.py"]);
    // From wherever it was asked for: the path may be a relative one.
    let whole = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    run_to_its_end(check.arg(whole).current_dir(workspace.root()))?;
    println!("wrote {}, which is what its schema says", path.display());
    Ok(path)
}
