//! A disk that is broken in one way.

use std::io::Write as _;

use leasehold_testkit::SmallDisk;

use super::patient::Patient;

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_cannot_be_written_fails() {
    let mut patient = Patient::new().await;
    patient.set("DATA_DIR", "/proc/leasehold");
    let report = patient.doctor().await;
    report.assert_fails(&["state_root.space", "state_root.writable"], "make room");
    report.assert_skips("state_root.", "state_root.writable failed");
    assert_eq!(report.verdict("postgres.commit"), "ok");
    let file = patient.dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    patient.set("DATA_DIR", file.join("data").to_str().unwrap());
    let report = patient.doctor().await;
    report.assert_fails(&["state_root.writable"], &file.to_string_lossy());
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_in_memory_fails() {
    let disk = match SmallDisk::mount(8 * 1024 * 1024) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small disk here: {reason}"),
    };
    let mut patient = Patient::new().await;
    patient.set("DATA_DIR", disk.path().to_str().unwrap());
    let report = patient.doctor().await;
    report.assert_fails(&["state_root.space"], "make room for 1.00 GiB");
    assert_eq!(report.verdict("state_root.file_system"), "warn");
    let mut filler = std::fs::File::create(disk.path().join("filler")).unwrap();
    for size in [1024 * 1024, 4 * 1024] {
        while filler.write_all(&vec![0; size]).is_ok() {}
    }
    let report = patient.doctor().await;
    report.assert_fails(&["state_root.space", "state_root.writable"], "make room");
    assert_eq!(super::patient::left_in(disk.path()).len(), 1, "the filler");
    patient.end().await;
}
