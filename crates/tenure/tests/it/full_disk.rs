//! A replica whose disk is full: told as that, nothing acknowledged is lost, other tenants go on being read.

use leasehold_ledger::Json;
use leasehold_testkit::{
    EmbeddedPair, Fleet, PATIENCE, SmallDisk, by_code, event, insert, keys_of, tenant, within,
};
use leasehold_types::ErrorCode;

const SMALL: u64 = 4 << 20;
const ROOMY: u64 = 256 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_and_what_was_acknowledged_is_handed_off_once_there_is_room() {
    let disk = match SmallDisk::mount(SMALL) {
        Ok(disk) => disk,
        Err(reason) => {
            println!("exception: not checked, since no small file system can be mounted here: {reason}");
            return;
        }
    };
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica_with("a", |options| options.state_root = disk.path().join("a"));
    let b = fleet.replica("b");
    let (key, other_key) = (tenant("full"), tenant("full-other"));
    let handle = a.router.open(&key).await.expect("a opens");
    let other = a.router.open(&other_key).await.expect("a opens another tenant");
    insert(&other, "other-1");

    let mut acknowledged = Vec::new();
    let refused = loop {
        let name = format!("k-{}", acknowledged.len());
        let mut large = event(&name);
        large.payload = Json::parse(format!("\"{}\"", "x".repeat(64 << 10))).expect("a payload");
        match by_code(handle.append(vec![large]).await) {
            Ok(_) => acknowledged.push(name),
            Err(code) => break code,
        }
        assert!(acknowledged.len() < 1_000, "the disk never fills");
    };
    assert_eq!(refused, ErrorCode::DiskFull);
    assert_eq!(
        keys_of(&handle),
        acknowledged,
        "what was acknowledged can be read, and nothing else is there"
    );
    assert_eq!(keys_of(&other), ["other-1"]);
    assert!(handle.is_open());

    let failed = within(PATIENCE, "a handoff with no room for an image", handle.handoff()).await;
    assert_eq!(by_code(failed), Err(ErrorCode::DiskFull));
    assert!(handle.is_open(), "the tenant serves again");
    assert_eq!(keys_of(&handle), acknowledged);

    disk.grow(ROOMY).expect("room is made");
    insert(&handle, "after");
    acknowledged.push("after".into());
    for (handle, key, keys) in
        [(&handle, &key, acknowledged), (&other, &other_key, vec!["other-1".to_owned()])]
    {
        within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
        let next = b.router.open(key).await.expect("b opens");
        assert_eq!(keys_of(&next), keys);
    }
}
