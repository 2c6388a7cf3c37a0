//! A tenant's salvages, the newest first.

use indicatif::HumanBytes;
use leasehold_types::ReplicaId;
use serde_json::{Value, json};

use super::kept::kept;
use crate::{
    cli::SalvageList,
    data_dir::DataDir,
    error::CliError,
    output::{Output, path_text},
};

pub(super) fn list(
    data_dir: &DataDir,
    only: Option<&ReplicaId>,
    args: &SalvageList,
    output: Output,
) -> Result<(), CliError> {
    let key = &args.key;
    let found = kept(data_dir, only, key)?;
    let salvages: Vec<Value> = found
        .iter()
        .map(|kept| {
            json!({
                "replica": kept.replica,
                "name": kept.salvage.name,
                "at": kept.salvage.at,
                "bytes": kept.salvage.bytes,
                "epoch": kept.salvage.epoch,
                "file": path_text(&kept.salvage.path),
            })
        })
        .collect();
    output.show(&json!({ "key": key, "salvages": salvages }), |out| {
        if found.is_empty() {
            return writeln!(out, "nothing of {key} was left behind here");
        }
        writeln!(out, "REPLICA\tNAME\tKEPT\tSIZE")?;
        for kept in &found {
            let salvage = &kept.salvage;
            writeln!(
                out,
                "{}\t{}\t{}\t{}",
                kept.replica,
                salvage.name,
                salvage.at,
                HumanBytes(salvage.bytes)
            )?;
        }
        Ok(())
    })
}
