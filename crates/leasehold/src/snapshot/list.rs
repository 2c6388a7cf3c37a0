//! A tenant's snapshots, newest first.

use indicatif::HumanBytes;
use serde_json::json;

use super::{document::SnapshotDocument, store::Store};
use crate::{cli::SnapshotList, error::CliError, output::Output};

pub(super) async fn list(store: &Store, args: &SnapshotList, output: Output) -> Result<(), CliError> {
    let key = &args.key;
    let found = store.list(key, args.limit as usize).await?;
    let snapshots: Vec<SnapshotDocument> =
        found.into_iter().enumerate().map(|(index, info)| SnapshotDocument::of(info, index == 0)).collect();
    let document = json!({ "key": key, "store": store.place(), "snapshots": snapshots });
    output.show(&document, |out| {
        if snapshots.is_empty() {
            return writeln!(out, "{key} has no snapshot in {}", store.place());
        }
        writeln!(out, "SNAPSHOT\tPOSITION\tPUBLISHED\tSTORED\tREPLICA\tSTATE")?;
        for snapshot in &snapshots {
            let dash = || "-".to_owned();
            writeln!(
                out,
                "{}\t{}\t{}\t{}\t{}\t{}",
                snapshot.snapshot,
                snapshot.position.map_or_else(dash, |position| position.to_string()),
                snapshot.at.map_or_else(dash, |at| at.to_string()),
                snapshot.bytes.map_or_else(dash, |bytes| HumanBytes(bytes).to_string()),
                snapshot.replica.as_ref().map_or_else(dash, ToString::to_string),
                snapshot.standing()
            )?;
        }
        Ok(())
    })
}
