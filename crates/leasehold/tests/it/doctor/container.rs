//! A container that is broken in one way.

use leasehold_testkit::{PATIENCE, eventually, within};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    front::{Front, Lie},
    patient::Patient,
};
use crate::process::command;

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_missing_or_closed_fails_and_the_rest_is_looked_at() {
    let mut patient = Patient::new().await;
    let container = patient.get("AZURE__CONTAINER").to_owned();
    patient.set("AZURE__CONTAINER", "nowhere-to-be-found");
    let report = patient.doctor().await;
    report.assert_fails(&["container.reach"], "az storage container create --name nowhere-to-be-found");
    report.assert_skips("container.", "container.reach failed");
    assert_eq!(report.verdict("postgres.commit"), "ok");
    patient.set("AZURE__CONTAINER", &container);
    patient.set("AZURE__ACCOUNT_KEY", "c2VjcmV0LWtleQ==");
    let report = patient.doctor().await;
    report.assert_fails(&["container.reach"], "403");
    assert!(!report.ended.out.contains("c2VjcmV0LWtleQ"), "{report:?}");
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_keep_what_it_says_fails_by_that_name() {
    let mut patient = Patient::new().await;
    for (lie, ids, part) in [
        (
            Lie::KeepsDeleted,
            &["container.soft_delete"][..],
            "forget would not be erasure: the account keeps what was deleted, by soft delete",
        ),
        (Lie::KeepsVersions, &["container.soft_delete"], "by versioning"),
        (Lie::TakesEveryPut, &["container.put_if_absent"], "a second put of a name is not refused"),
        (Lie::ListsNothing, &["container.list"], "does not show"),
        (Lie::IsPublic, &["container.public_access"], "--public-access off"),
        (Lie::IsHeld, &["container.hold"], "legal hold"),
    ] {
        let front = Front::start(lie).await;
        front.before(&mut patient);
        patient.doctor().await.assert_fails(ids, part);
    }
    // The listing that hid them let the probes of that run stay; what follows is about others.
    let hidden = patient.objects().await.len();
    let front = Front::start(Lie::DeletesNothing).await;
    front.before(&mut patient);
    let report = patient.doctor().await;
    let ids = ["container.cleanup", "container.gone", "container.soft_delete"];
    report.assert_fails(&ids, "remove what lies under _doctor/");
    assert!(patient.objects().await.len() > hidden, "it said so, and so it is");
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_that_is_interrupted_takes_its_probes_along() {
    let mut patient = Patient::new().await;
    let front = Front::start(Lie::NeverReads).await;
    front.before(&mut patient);
    let mut doctor = command();
    let mut child =
        doctor.args(["doctor", "--json", "--limit", "50s"]).envs(patient.environment()).spawn().unwrap();
    eventually(PATIENCE, "the probes are put", async || patient.objects().await.len() == 2).await;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let status = within(PATIENCE, "the doctor's end", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(patient.objects().await, []);
    patient.end().await;
}
