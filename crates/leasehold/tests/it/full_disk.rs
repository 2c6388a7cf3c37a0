//! A full disk: a typed refusal, nothing acknowledged lost, other tenants read; and once there is room, everything goes on.

use std::io::Write as _;

use leasehold_testkit::SmallDisk;

use crate::process::Replica;

/// The leases lie on the same disk: they must not run out while it is full.
const ENVIRONMENT: &[(&str, &str)] = &[("LEASEHOLD_SNAPSHOT__EVERY", "0s"), ("LEASEHOLD_TTL", "120s")];
const SMALL: u64 = 8 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_loses_nothing() {
    let disk = match SmallDisk::mount(SMALL) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small disk here: {reason}"),
    };
    let replica = Replica::start_in(disk.path(), ENVIRONMENT).await;
    replica.write("acme/other", "k-1").await;
    replica.write("acme/big", "first").await;
    let mut filler = std::fs::File::create(disk.path().join("filler")).unwrap();
    for size in [1024 * 1024, 4 * 1024] {
        // Down to the last page.
        while filler.write_all(&vec![0; size]).is_ok() {}
    }

    let long = "x".repeat(64 * 1024);
    let mut acknowledged = 1;
    let refused = loop {
        let answer = replica.append("acme/big", &long).await;
        if !answer.is_acknowledged() {
            break answer;
        }
        acknowledged += 1;
        assert!(acknowledged < 1_000, "the disk does not fill");
    };
    assert_eq!((refused.status, refused.code()), (507, "disk_full"), "{refused:?}");
    assert_eq!(refused.body["executed"], "no");
    assert_eq!(replica.names("acme/big").await.len(), acknowledged);
    assert_eq!(replica.names("acme/other").await, ["k-1"]);

    disk.grow(8 * SMALL).unwrap();
    replica.write("acme/big", "last").await;
    replica.write("acme/other", "k-2").await;
    replica.stop().await.assert(0);
    let next = Replica::start(disk.path()).await;
    assert_eq!(next.names("acme/big").await.len(), acknowledged + 1);
    assert_eq!(next.names("acme/other").await, ["k-1", "k-2"]);
    next.stop().await.assert(0);
}
