//! A disk with no room: a file system of 1 MiB in memory, where the system lets us mount one.

use std::{fs, io::Write as _, sync::Arc};

use leasehold_lease::{LeaseError, LeaseStore as _, Renewal, SqliteLeaseStore};
use leasehold_testkit::{ManualClock, SmallDisk};

use crate::stage::{TTL, key, tenure_id};

#[tokio::test]
async fn a_full_disk_is_named_and_loses_no_lease() {
    let disk = match SmallDisk::mount(1024 * 1024) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small disk here: {reason}"),
    };
    let path = disk.path().join("leases.db");
    let store = SqliteLeaseStore::open(&path, Arc::new(ManualClock::new())).unwrap();
    let replica = "a".parse().unwrap();
    store.acquire(&key("acme/first"), &replica, tenure_id(1), TTL).await.unwrap();

    let filler = disk.path().join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let mut refused = None;
    for tenant in 0..1_000 {
        let wanted = key(&format!("acme/{tenant}"));
        if let Err(error) = store.acquire(&wanted, &replica, tenure_id(1), TTL).await {
            refused = Some((wanted, error));
            break;
        }
    }
    let (wanted, error) = refused.unwrap();
    assert!(matches!(error, LeaseError::Full { .. }), "{error:?}");
    assert!(error.code().as_str() == "disk_full" && error.is_transient());
    assert!(error.to_string().contains(&format!("acquire {wanted}")), "{error}");
    assert_eq!(store.read(&wanted).await.unwrap(), None, "nothing was written");

    drop(file);
    fs::remove_file(&filler).unwrap();
    let row = store.read(&key("acme/first")).await.unwrap().unwrap();
    let claim = leasehold_lease::Claim {
        key: row.key,
        replica: replica.clone(),
        tenure: tenure_id(1),
        epoch: row.epoch,
    };
    assert_eq!(store.renew(&[claim], TTL).await.unwrap(), [Renewal::Granted]);
    store.acquire(&wanted, &replica, tenure_id(1), TTL).await.unwrap();
}
