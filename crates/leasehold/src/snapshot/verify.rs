//! Every snapshot of a tenant, fetched and checked.

use leasehold_snapshot::At;
use leasehold_types::{ErrorCode, LeaseKey};
use serde_json::json;

use super::{
    document::{SnapshotDocument, Standing},
    store::{SNAPSHOTS_MAX, Store},
};
use crate::{cli::SnapshotVerify, error::CliError, exit::Exit, output::Output};

pub(super) async fn verify(store: &Store, args: &SnapshotVerify, output: Output) -> Result<Exit, CliError> {
    let key = &args.key;
    let found = store.list(key, SNAPSHOTS_MAX).await?;
    if found.is_empty() {
        return Err(CliError::NoSnapshot { key: key.clone(), store: store.place().to_owned() });
    }
    let bar = output.progress().things(&format!("verifying {key}"), found.len() as u64);
    let mut snapshots = Vec::with_capacity(found.len());
    for (index, info) in found.into_iter().enumerate() {
        bar.say(format!("verifying {key} {}", info.snapshot));
        let at = At::Snapshot(info.snapshot);
        let mut document = SnapshotDocument::of(info, index == 0);
        // One without its manifest has been told what is wrong with it; fetching one without its parts tells which.
        if document.position.is_some() && document.state != Standing::Swept {
            match check(store, key, at).await? {
                None => document.state = Standing::Ok,
                Some(error) => document.damaged(&error),
            }
        }
        snapshots.push(document);
        bar.advance(1);
    }
    drop(bar);
    let damaged = snapshots.iter().filter(|snapshot| snapshot.state == Standing::Damaged).count();
    let document = json!({
        "key": key,
        "store": store.place(),
        "snapshots": snapshots,
        "damaged": damaged,
    });
    output.show(&document, |out| {
        for snapshot in &snapshots {
            writeln!(out, "{}\t{}", snapshot.snapshot, snapshot.standing())?;
        }
        Ok(())
    })?;
    Ok(if damaged == 0 { Exit::Done } else { Exit::Damaged })
}

/// What is wrong with a snapshot; the error is one of this disk or of the store as a whole.
async fn check(store: &Store, key: &LeaseKey, at: At) -> Result<Option<CliError>, CliError> {
    let file = store.scratch();
    let fetched = store.fetch(key, at, &file).await;
    // The next one lands on the same name; what is left at the end goes with the directory.
    let _ = std::fs::remove_file(&file);
    match fetched {
        Ok(_) => Ok(None),
        Err(error) if matches!(error.code(), ErrorCode::Damaged | ErrorCode::FormatTooNew) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}
