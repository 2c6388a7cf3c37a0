//! One tenant, several replicas that all want it: at most one serves, and what was acknowledged moves along.

use leasehold_tenure::Handle;
use leasehold_testkit::{
    EmbeddedPair, Fleet, PATIENCE, Replica, by_code, insert, keys_of, tenant, try_insert, within,
};
use leasehold_types::ErrorCode;

const ROUNDS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn whoever_wins_a_race_for_a_tenant_has_everything_that_was_acknowledged() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let replicas: Vec<Replica> = ["a", "b", "c"].iter().map(|id| fleet.replica(id)).collect();
    let key = tenant("moves");
    let mut acknowledged: Vec<String> = Vec::new();
    let mut last_epoch = 0;
    // Who let its lease run out in the last round, and does not know yet.
    let mut asleep: Option<Handle> = None;
    for round in 0..ROUNDS {
        let awake =
            replicas.iter().filter(|replica| asleep.is_none() || replica.router.handle_of(&key).is_none());
        let opens = awake.map(|replica| replica.router.open(&key));
        let outcomes = within(PATIENCE, "the race", futures::future::join_all(opens)).await;
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "exactly one replica has the tenant");
        for refused in lost {
            assert_eq!(refused.expect_err("it lost").code(), ErrorCode::LeaseHeld);
        }
        let handle = won.into_iter().flatten().next().expect("the winner");
        assert!(handle.epoch().get() > last_epoch, "the epoch rises with every acquisition");
        last_epoch = handle.epoch().get();
        assert_eq!(keys_of(&handle), acknowledged, "round {round}");
        if let Some(woken) = asleep.take() {
            assert_eq!(try_insert(&woken, "zombie"), Err(ErrorCode::Fenced));
            assert_eq!(by_code(woken.renew().await), Err(ErrorCode::Fenced));
        }

        let written = format!("k-{round}");
        insert(&handle, &written);
        if round % 4 == 3 {
            // What was not published is the declared tail, and the old owner serves no more.
            fleet.outlive_leases().await;
            assert_eq!(try_insert(&handle, "late"), Err(ErrorCode::Fenced));
            asleep = Some(handle);
            continue;
        }
        acknowledged.push(written);
        if round % 2 == 0 {
            within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
        } else {
            within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
            within(PATIENCE, "the abandon", handle.abandon()).await.expect("abandoned");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_with_one_replica_id_are_two_owners() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (one, other) = (fleet.replica("a"), fleet.replica("a"));
    let key = tenant("one-id");
    let handle = one.router.open(&key).await.expect("the first opens");
    insert(&handle, "k-1");
    let refused = other.router.open(&key).await.expect_err("the second does not adopt the first one's lease");
    assert_eq!(refused.code(), ErrorCode::LeaseHeld);
    insert(&handle, "k-2");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    let next = other.router.open(&key).await.expect("then the second opens");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
}
