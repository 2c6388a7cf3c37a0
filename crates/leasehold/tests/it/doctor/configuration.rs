//! A configuration that cannot be used, and one that is looked at alone.

use std::fs;

use super::patient::{Patient, Report, directory};
use crate::process::{leasehold, leasehold_in};

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_named_and_nothing_is_looked_at() {
    let dir = directory();
    let file = dir.path().join("leasehold.toml");
    fs::write(&file, "[limits]\nrowz_max = 5\n").unwrap();
    let file = file.to_str().unwrap();
    for arguments in [&["doctor", "--config", file][..], &["doctor", "--config", file, "--check-config-only"]]
    {
        let table = leasehold(arguments).await.assert(2);
        assert!(table.out.contains("`limits.rowz_max`") && table.out.contains(file), "{table:?}");
        let ended = leasehold(arguments.iter().copied().chain(["--json"])).await.assert(2);
        let report = Report::of(ended);
        assert_eq!(report.with("fail"), ["config.load"]);
        assert_eq!(report.with("skipped").len() > 30, arguments.len() == 3, "all of it, or that alone");
        report.assert_skips("", "config.load failed");
    }
    let half = [("LEASEHOLD_POSTGRES__URL", "postgres://app:hunter2@db/main")];
    let ended = leasehold_in(&half, ["doctor", "--check-config-only"]).await.assert(2);
    assert!(ended.out.contains("azure") && !ended.out.contains("hunter2"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_checked_without_any_network() {
    let mut patient = Patient::new().await;
    let was = patient.get("POSTGRES__URL").to_owned();
    // Names that nobody has (RFC 6761).
    patient.set("POSTGRES__URL", "postgres://app:hunter2@db.invalid/main");
    patient.set("AZURE__ENDPOINT", "https://blobs.invalid/account");
    let report = Report::of(patient.ended(&["--check-config-only", "--json"]).await);
    report.assert_well(&[]);
    assert_eq!(report.with("ok"), ["config.load", "config.serving"]);
    assert!(!report.ended.out.contains("hunter2"));
    patient.set("MARGIN", "20m");
    let ended = patient.ended(&["--check-config-only"]).await.assert(2);
    assert!(ended.out.contains("`margin`"), "{ended:?}");
    patient.set("MARGIN", "2m");
    // What only a process that serves is told.
    let environment = patient.environment();
    let without: Vec<_> = environment.into_iter().filter(|(key, _)| *key != "LEASEHOLD_REPLICA").collect();
    let looked = ["doctor", "--check-config-only", "--json"];
    let report = Report::of(leasehold_in(&without, looked).await);
    report.assert_well(&["config.serving"]);
    assert!(report.ended.out.contains("`replica`"), "{report:?}");
    leasehold_in(&without, looked.into_iter().chain(["--strict"])).await.assert(1);
    patient.set("POSTGRES__URL", &was);
    patient.end().await;
}
