//! A snapshot, written to a new file.

use indicatif::HumanBytes;
use leasehold_snapshot::{At, SnapshotError, SnapshotInfo};
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

/// The snapshot that an operator means, where its parts are kept still.
async fn resolve(store: &Store, key: &LeaseKey, which: Which) -> Result<At, CliError> {
    if which == Which::At(At::Newest) {
        return Ok(At::Newest);
    }
    for (index, info) in store.list(key, SNAPSHOTS_MAX).await?.into_iter().enumerate() {
        let SnapshotInfo { snapshot, manifest, available } = info;
        let chosen = match which {
            Which::Number(number) => snapshot.number == number,
            Which::At(At::Newest) => true,
            Which::At(At::Snapshot(asked)) => snapshot == asked,
            // One that cannot be read is never passed over in silence.
            Which::At(At::Time(time)) => manifest?.at <= time,
            Which::At(At::Position(position)) => manifest?.position <= position,
        };
        // The newest one is never swept: if it lacks a part, fetching it says which.
        if chosen && !available && index > 0 {
            return Err(CliError::Swept { key: key.clone(), snapshot });
        }
        if chosen {
            return Ok(At::Snapshot(snapshot));
        }
    }
    Err(SnapshotError::NoSuchSnapshot { key: key.clone(), which: which.to_string() }.into())
}
