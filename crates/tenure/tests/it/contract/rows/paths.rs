//! P: a destructive call takes only what is the tenant's own.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use leasehold_blob::BlobPrefix;
use leasehold_lease::{Acquired, HeldLease, HeldOptions};
use leasehold_tenure::{discard_local_ledger, forget_tenant, tenant_root};
use leasehold_testkit::{
    Fleet, MARGIN, PATIENCE, Pair, Replica, TTL, by_code, insert, keys_of, tenant, try_insert, within,
};
use leasehold_types::{Entropy, ErrorCode, LeaseKey};

pub(crate) async fn p1_forget_refuses_a_root_that_is_not_the_tenants_own<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let (key, sibling_key) = (tenant("p1"), tenant("p1-sibling"));
    let lease = hold(&fleet, &a, &key).await;
    let context = a.router.snapshots();
    let node = fleet.scratch();
    let strange = node.join("somebody-elses");
    let sibling = tenant_root(&node, &sibling_key);
    let own = tenant_root(&node, &key);
    for root in [&strange, &sibling, &own] {
        furnish(root);
    }

    for root in [strange.clone(), sibling.clone(), sibling.join(".."), own.join("..").join("..")] {
        let outcome = forget_tenant(context, &lease, &root).await;
        assert_eq!(by_code(outcome).map(drop), Err(ErrorCode::InvalidArgument), "{}", root.display());
    }
    for root in [&strange, &sibling, &own] {
        assert!(is_furnished(root), "{} is untouched", root.display());
    }
    let row = fleet.lease_store().read(&key).await.expect("the row").expect("there is one");
    assert_eq!(row.floor.get(), 0, "and it had no effect in the lease store either");

    within(PATIENCE, "the forget", forget_tenant(context, &lease, &own)).await.expect("forgotten");
    assert!(!own.exists(), "its own root goes");
    assert!(is_furnished(&strange) && is_furnished(&sibling));
}

pub(crate) async fn p2_a_prefix_ends_on_a_segment<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    fleet.put("acme/t1/e00000001/base.json", "1").await;
    fleet.put("acme2/t9/e00000001/base.json", "2").await;
    let blobs = fleet.blob_store();

    assert!("acme".parse::<BlobPrefix>().is_err(), "half a name is no prefix");
    assert_eq!(fleet.stored("acme/").await.len(), 1);
    let whole: BlobPrefix = "acme/".parse().expect("a prefix");
    assert_eq!(blobs.delete_prefix(&whole).await.expect("deleted"), 1);
    assert!(fleet.stored("acme/").await.is_empty());
    assert_eq!(fleet.stored("acme2/").await.len(), 1, "the neighbour stays");
}

pub(crate) async fn p3_a_shared_state_root_leaves_the_older_writer_an_unlinked_file<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let b = fleet.replica_sharing("b", "a");
    let key = tenant("p3");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    let path = a.ledger_file(&key);
    // What the older writer has open. Holding it here too keeps its inode number from being given to the new file.
    let older = fs::File::open(&path).expect("a's file");

    fleet.outlive_leases().await;
    let next = b.router.open(&key).await.expect("b opens on the same root");

    let older_facts = older.metadata().expect("an open file's facts");
    assert_eq!(older_facts.nlink(), 0, "the older file is on no path any more");
    assert_ne!(
        fs::metadata(&path).expect("b's file").ino(),
        older_facts.ino(),
        "the path leads to a new one"
    );
    assert_eq!(try_insert(&handle, "zombie"), Err(ErrorCode::Fenced));
    assert_eq!(keys_of(&next), ["k-1"]);

    // What ends the older tenure then leaves the newer one's file alone.
    let _ = within(PATIENCE, "a's abandon", handle.abandon()).await;
    insert(&next, "k-2");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
    assert!(path.exists());
}

pub(crate) async fn p4_the_directory_that_was_checked_is_the_one_that_goes<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("p4");
    let lease = hold(&fleet, &a, &key).await;
    let context = a.router.snapshots();
    let node = fleet.scratch();
    let deep = node.join("elsewhere").join("deep");
    fs::create_dir_all(&deep).expect("a directory");
    symlink(&deep, node.join("link")).expect("a link");
    let checked = tenant_root(&node, &key);
    // The system reads `link/..` as the parent of what the link leads to; as text it is the directory beside the link.
    let behind = tenant_root(&node.join("elsewhere"), &key);
    for root in [&checked, &behind] {
        furnish(root);
    }
    let spelled = tenant_root(&node.join("link").join(".."), &key);

    let refused = discard_local_ledger(&key, &node.join("somebody-elses"));
    assert_eq!(by_code(refused), Err(ErrorCode::InvalidArgument));
    let discarded = tenant("p4-discarded");
    let own = tenant_root(&node, &discarded);
    let behind_too = tenant_root(&node.join("elsewhere"), &discarded);
    for root in [&own, &behind_too] {
        furnish(root);
        fs::write(leasehold_ledger::ledger_path(root), "a ledger").expect("a file");
    }
    let spelled_too = tenant_root(&node.join("link").join(".."), &discarded);
    by_code(discard_local_ledger(&discarded, &spelled_too)).expect("the ledger is discarded");
    assert!(!leasehold_ledger::ledger_path(&own).exists());
    assert!(leasehold_ledger::ledger_path(&behind_too).exists(), "what lies behind the link is untouched");

    within(PATIENCE, "the forget", forget_tenant(context, &lease, &spelled)).await.expect("forgotten");
    assert!(!checked.exists());
    assert!(is_furnished(&behind), "what lies behind the link is untouched");
}

/// Acquires a lease as an operator's tool would, without a router.
async fn hold<P: Pair>(fleet: &Fleet<P>, replica: &Replica, key: &LeaseKey) -> HeldLease {
    let acquired = HeldLease::acquire(
        fleet.lease_store(),
        Arc::new(replica.clock.clone()),
        key.clone(),
        "operator".parse().expect("a replica id"),
        Entropy::seeded(77).tenure_id(),
        HeldOptions::new(TTL, MARGIN).expect("times that fit"),
    )
    .await
    .expect("the lease store answers");
    match acquired {
        Acquired::Held(lease) => lease,
        other => panic!("not acquired: {other:?}"),
    }
}

fn precious(root: &Path) -> PathBuf {
    root.join("precious.txt")
}

fn furnish(root: &Path) {
    fs::create_dir_all(root).expect("a directory");
    fs::write(precious(root), "keep").expect("a file");
}

fn is_furnished(root: &Path) -> bool {
    fs::read_to_string(precious(root)).is_ok_and(|text| text == "keep")
}
