//! L: the local file is a cache; the durable copy is the authority.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use leasehold_testkit::{Fleet, PATIENCE, Pair, insert, keys_of, tenant, within};

pub(crate) async fn l1_a_flushed_ledger_is_gone_and_an_abandoned_one_is_kept<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("l1");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    let file = a.ledger_file(&key);
    assert!(file.exists());
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    for suffix in ["", "-wal", "-shm"] {
        assert!(!beside(&file, suffix).exists(), "the ledger's {suffix:?} is gone");
    }

    let again = a.router.open(&key).await.expect("a opens again");
    insert(&again, "k-2");
    within(PATIENCE, "the abandon", again.abandon()).await.expect("abandoned");
    assert!(file.exists());
    // What was written last is in the log beside the file: kept means that it can be read from what is kept.
    let kept = fleet.scratch().join("kept.db");
    fs::create_dir_all(fleet.scratch()).expect("a directory");
    for suffix in ["", "-wal"] {
        fs::copy(beside(&file, suffix), beside(&kept, suffix)).expect("the ledger and its log are kept");
    }
    let connection = rusqlite::Connection::open(&kept).expect("what was kept opens");
    let last: String = connection
        .query_row("SELECT subject_id FROM events ORDER BY seq DESC LIMIT 1", [], |row| row.get(0))
        .expect("what was kept has events");
    assert_eq!(last, "k-2");
}

pub(crate) async fn l2_the_durable_copy_is_the_authority<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("l2");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    insert(&handle, "k-2");
    within(PATIENCE, "the abandon", handle.abandon()).await.expect("abandoned");
    assert!(a.ledger_file(&key).exists(), "there until the reopen");

    let again = a.router.open(&key).await.expect("a opens again");
    assert_eq!(keys_of(&again), ["k-1"], "the tail is not brought back");
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}
