//! A snapshot, written to a new file.

use indicatif::HumanBytes;
use leasehold_snapshot::At;
use leasehold_types::LeaseKey;
use serde_json::json;

use super::store::{Fetched, SNAPSHOTS_MAX, Store};
use crate::{
    cli::{SnapshotRestore, Which},
    error::CliError,
    new_file::NewFile,
    output::{Output, path_text},
};

pub(super) async fn restore(store: &Store, args: &SnapshotRestore, output: Output) -> Result<(), CliError> {
    let key = &args.key;
    let file = NewFile::beside(&args.to, false)?;
    let bar = output.progress().spinner(&format!("restoring {key}"));
    let at = resolve(store, key, args.at).await?;
    let Fetched { restored, facts } = store.fetch(key, at, &file.path()).await?;
    drop(bar);
    file.appear()?;
    let document = json!({
        "key": key,
        "snapshot": restored.snapshot.to_string(),
        "position": restored.position,
        "at": restored.at,
        "file": path_text(&args.to),
        "bytes": facts.bytes,
    });
    output.show(&document, |out| {
        writeln!(
            out,
            "wrote {}: snapshot {} of {key}, published {}, up to {}, {}",
            args.to.display(),
            restored.snapshot,
            restored.at,
            restored.position,
            HumanBytes(facts.bytes)
        )
    })
}

/// The snapshot that an operator means.
async fn resolve(store: &Store, key: &LeaseKey, which: Which) -> Result<At, CliError> {
    let number = match which {
        Which::At(at) => return Ok(at),
        Which::Number(number) => number,
    };
    let found = store.list(key, SNAPSHOTS_MAX).await?;
    let snapshot = found.into_iter().map(|info| info.snapshot).find(|snapshot| snapshot.number == number);
    let none =
        || leasehold_snapshot::SnapshotError::NoSuchSnapshot { key: key.clone(), which: number.to_string() };
    Ok(At::Snapshot(snapshot.ok_or_else(none)?))
}
