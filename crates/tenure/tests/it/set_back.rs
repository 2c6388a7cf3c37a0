//! The lease table set back to each state that it ever had, forget floors included, as a restored backup or a promoted standby that had
//! not heard of the rest would: no epoch is given twice, what was forgotten stays so, and what is served is the newest that was
//! published and not forgotten. The owner that the table has forgotten is still there each time, and goes on trying.

use leasehold_blob::Payload;
use leasehold_tenure::{Handle, Router};
use leasehold_testkit::{Fleet, PATIENCE, Pair, by_code, insert, keys_of, tenant, within};
use leasehold_types::{ErrorCode, LeaseKey};

/// How much is set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// One tenant's row.
    Row,
    /// All rows.
    Table,
}

/// What the forgotten owner tries.
#[derive(Clone, Copy, Debug)]
enum Late {
    Snapshot,
    Handoff,
    Forget,
}

/// A tenant's life so far, all of whose rows are kept.
struct Life {
    key: LeaseKey,
    neighbour: LeaseKey,
    /// How many states the leases had.
    states: u32,
    /// What was forgotten, by name.
    forgotten: Vec<(String, bytes::Bytes)>,
    /// What was published since, in order.
    published: Vec<String>,
}

async fn opened<P: Pair>(fleet: &Fleet<P>, router: &Router, key: &LeaseKey) -> Handle {
    let opened = router.open(key).await;
    match opened {
        Err(error) if error.code() == ErrorCode::LeaseHeld => {
            fleet.outlive_leases().await;
            router.open(key).await.expect("the lease has run out")
        }
        opened => opened.expect("it opens"),
    }
}

async fn handed_off(handle: &Handle) {
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
}

/// What is stored of a tenant, but for what a sweep takes away meanwhile.
async fn bodies<P: Pair>(fleet: &Fleet<P>, key: &LeaseKey) -> Vec<(String, bytes::Bytes)> {
    let names = fleet.stored_of(key).await;
    let read = names.into_iter().map(|name| async move {
        let object = name.parse().expect("an object key");
        let body = fleet.store_behind().get(&object, 64 << 20).await.expect("read");
        body.map(|body| (name, body))
    });
    futures::future::join_all(read).await.into_iter().flatten().collect()
}

/// Puts what was forgotten once more, where it is not there again already.
async fn land<P: Pair>(fleet: &Fleet<P>, objects: &[(String, bytes::Bytes)]) {
    let puts = objects.iter().map(|(name, body)| async move {
        let object = name.parse().expect("an object key");
        fleet.store_behind().put_if_absent(&object, Payload::Bytes(body.clone())).await.expect("put");
    });
    futures::future::join_all(puts).await;
}

/// Open, publish, handoff, reopen, abandon, forget, and all of that again.
async fn live<P: Pair>(fleet: &Fleet<P>) -> Life {
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let (key, neighbour) = (tenant("set-back"), tenant("neighbour"));
    fleet.pair().keep_states().await;
    let beside = a.router.open(&neighbour).await.expect("a opens the neighbour");
    insert(&beside, "n-1");
    handed_off(&beside).await;

    let first = a.router.open(&key).await.expect("a opens");
    insert(&first, "old-1");
    within(PATIENCE, "the snapshot", first.snapshot()).await.expect("published");
    insert(&first, "old-2");
    handed_off(&first).await;
    let second = b.router.open(&key).await.expect("b opens");
    insert(&second, "old-3");
    within(PATIENCE, "the abandon", second.abandon()).await.expect("abandoned");
    let third = a.router.open(&key).await.expect("a opens again");
    assert_eq!(keys_of(&third), ["old-1", "old-2"]);
    insert(&third, "old-4");
    within(PATIENCE, "the snapshot", third.snapshot()).await.expect("published");
    let forgotten = bodies(fleet, &key).await;
    within(PATIENCE, "the forget", third.forget()).await.expect("forgotten");

    let mut published = Vec::new();
    for (replica, written) in [(&b, "new-1"), (&a, "new-2")] {
        let handle = replica.router.open(&key).await.expect("it is created again");
        assert_eq!(keys_of(&handle), published);
        insert(&handle, written);
        published.push(written.to_owned());
        handed_off(&handle).await;
    }
    let states = fleet.pair().kept_states().await;
    assert!(states >= 15, "{states} states");
    Life { key, neighbour, states, forgotten, published }
}

/// The highest epoch that the store has seen of a tenant.
async fn highest<P: Pair>(fleet: &Fleet<P>, key: &LeaseKey) -> u64 {
    let epoch_of = |name: &String| name.split('/').find_map(|part| part.strip_prefix('e')?.parse().ok());
    fleet.stored_of(key).await.iter().filter_map(epoch_of).max().expect("an epoch")
}

async fn late(owner: &Handle, how: Late) -> Result<(), ErrorCode> {
    let tried = async {
        match how {
            Late::Snapshot => by_code(owner.snapshot().await).map(drop),
            Late::Handoff => by_code(owner.handoff().await),
            Late::Forget => by_code(owner.forget().await).map(drop),
        }
    };
    within(PATIENCE, "the forgotten owner's try", tried).await
}

async fn each_earlier_state<P: Pair>(extent: Extent) {
    let fleet = Fleet::<P>::manual().await;
    let Life { key, neighbour, states, forgotten, mut published } = live(&fleet).await;
    let mut without_a_floor = 0;
    for state in 0..=states {
        let shown = format!("{extent:?} set back to state {state} of {states}");
        let owner = fleet.replica(&format!("owner-{state}"));
        let present = opened(&fleet, &owner.router, &key).await;
        assert_eq!(keys_of(&present), published, "{shown}");
        let [counted, uncounted, next] =
            ["counted", "uncounted", "next"].map(|kind| format!("{kind}-{state}"));
        insert(&present, &counted);
        within(PATIENCE, "the snapshot", present.snapshot()).await.expect("published");
        published.push(counted);
        insert(&present, &uncounted);

        let only = if extent == Extent::Row { Some(&key) } else { None };
        fleet.pair().set_back(state, only).await;
        let row = fleet.pair().leases().read(&key).await.expect("a row");
        assert!(row.as_ref().is_none_or(|row| row.epoch < present.epoch()), "{shown}: the row has forgotten");
        assert!(state > 0 || row.is_none(), "{shown}");
        without_a_floor += u32::from(row.is_none_or(|row| row.floor.get() == 0));
        // What was forgotten lands once more, as a late writer's retries would bring it.
        land(&fleet, &forgotten).await;
        let how = [Late::Snapshot, Late::Handoff, Late::Forget][state as usize % 3];
        let is_before = state % 2 == 0;
        if is_before {
            // Its manifest is put before the row is asked: it is told that it is fenced, and what was put before the next pin counts.
            assert_eq!(late(&present, how).await, Err(ErrorCode::Fenced), "{shown}");
            if !matches!(how, Late::Forget) {
                published.push(uncounted);
            }
        }

        let seen = highest(&fleet, &key).await;
        let successor = fleet.replica(&format!("next-{state}"));
        let handle = opened(&fleet, &successor.router, &key).await;
        assert!(handle.epoch().get() > seen, "{shown}: epoch {} after {seen}", handle.epoch());
        assert_eq!(keys_of(&handle), published, "{shown}");
        if !is_before {
            assert_eq!(late(&present, how).await, Err(ErrorCode::Fenced), "{shown}");
        }
        insert(&handle, &next);
        published.push(next);
        handed_off(&handle).await;
        if extent == Extent::Table {
            let seen = highest(&fleet, &neighbour).await;
            let beside = opened(&fleet, &successor.router, &neighbour).await;
            assert!(beside.epoch().get() > seen, "{shown}");
            assert_eq!(keys_of(&beside), ["n-1"], "{shown}");
            handed_off(&beside).await;
        }
    }
    assert!((5..states).contains(&without_a_floor), "{without_a_floor} of {states} states have no floor");
    let last = opened(&fleet, &fleet.replica("last").router, &key).await;
    assert_eq!(keys_of(&last), published);
}

/// The same where nothing was published since a forget: what landed late is the newest that there is, and nobody reads it.
async fn each_earlier_state_of_a_forgotten_tenant<P: Pair>(extent: Extent) {
    let fleet = Fleet::<P>::manual().await;
    let Life { key, states, forgotten, mut published, .. } = live(&fleet).await;
    for state in 0..=states {
        let shown = format!("{extent:?} set back to state {state} of {states}");
        let owner = fleet.replica(&format!("owner-{state}"));
        let present = opened(&fleet, &owner.router, &key).await;
        assert_eq!(keys_of(&present), published, "{shown}");
        insert(&present, &format!("counted-{state}"));
        within(PATIENCE, "the snapshot", present.snapshot()).await.expect("published");
        let newest = bodies(&fleet, &key).await;
        let receipt = within(PATIENCE, "the forget", present.forget()).await.expect("forgotten");
        assert!(receipt.floor.covers(present.epoch()), "{shown}");

        fleet.pair().set_back(state, if extent == Extent::Row { Some(&key) } else { None }).await;
        land(&fleet, &forgotten).await;
        land(&fleet, &newest).await;
        let successor = fleet.replica(&format!("next-{state}"));
        let handle = opened(&fleet, &successor.router, &key).await;
        assert!(!receipt.floor.covers(handle.epoch()), "{shown}: epoch {}", handle.epoch());
        assert!(keys_of(&handle).is_empty(), "{shown}: what was forgotten is served: {:?}", keys_of(&handle));
        published = vec![format!("next-{state}")];
        insert(&handle, &published[0]);
        handed_off(&handle).await;
    }
}

macro_rules! over_a_pair {
    ($name:ident, $pair:ty) => {
        mod $name {
            use super::{Extent, each_earlier_state, each_earlier_state_of_a_forgotten_tenant};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_row_set_back_to_each_earlier_state_resurrects_nothing_and_loses_no_publish() {
                each_earlier_state::<$pair>(Extent::Row).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_table_set_back_to_each_earlier_state_resurrects_nothing_and_loses_no_publish() {
                each_earlier_state::<$pair>(Extent::Table).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_row_set_back_to_each_earlier_state_brings_back_nothing_that_was_forgotten() {
                each_earlier_state_of_a_forgotten_tenant::<$pair>(Extent::Row).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_table_set_back_to_each_earlier_state_brings_back_nothing_that_was_forgotten() {
                each_earlier_state_of_a_forgotten_tenant::<$pair>(Extent::Table).await;
            }
        }
    };
}

over_a_pair!(embedded, leasehold_testkit::EmbeddedPair);
over_a_pair!(cloud, leasehold_testkit::CloudPair);
