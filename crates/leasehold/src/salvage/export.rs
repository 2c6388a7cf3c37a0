//! One salvage, written to a new file.

use indicatif::HumanBytes;
use leasehold_types::ReplicaId;
use serde_json::json;

use super::kept::{Kept, kept};
use crate::{
    cli::SalvageExport,
    data_dir::DataDir,
    error::CliError,
    new_file::NewFile,
    output::{Output, path_text},
};

pub(super) async fn export(
    data_dir: &DataDir,
    only: Option<&ReplicaId>,
    args: SalvageExport,
    output: Output,
) -> Result<(), CliError> {
    let SalvageExport { key, name, to } = args;
    let mut found = kept(data_dir, only, &key)?;
    found.retain(|kept| name.as_ref().is_none_or(|name| *name == kept.salvage.name));
    if found.len() > 1 {
        let name_of = |kept: &Kept| format!("{} of {}", kept.salvage.name, kept.replica);
        let names = found.iter().map(name_of).collect::<Vec<_>>().join(", ");
        return Err(CliError::SeveralSalvages { key, names });
    }
    let Some(Kept { replica, salvage }) = found.pop() else {
        return Err(CliError::NoSalvage { key, name });
    };
    let file = NewFile::beside(&to, false)?;
    let bar = output.progress().spinner(&format!("exporting {}", salvage.name));
    let (from, path) = (salvage.clone(), file.path());
    let exported = tokio::task::spawn_blocking(move || from.export(&path)).await;
    drop(bar);
    let facts = exported.map_err(|error| CliError::Process {
        action: "copy a salvage",
        source: std::io::Error::other(error),
    })??;
    file.appear()?;
    let document = json!({
        "key": key,
        "replica": replica,
        "name": salvage.name,
        "position": facts.position,
        "file": path_text(&to),
        "bytes": facts.bytes,
    });
    output.show(&document, |out| {
        let position = facts.position.map_or_else(|| "no event".to_owned(), |position| position.to_string());
        let (name, size) = (&salvage.name, HumanBytes(facts.bytes));
        writeln!(out, "wrote {}: {name} of {replica}, up to {position}, {size}", to.display())
    })
}
