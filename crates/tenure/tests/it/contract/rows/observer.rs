//! O: no observer can harm a tenure.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use leasehold_testkit::{Fleet, PATIENCE, Pair, insert, keys_of, tenant, within};

pub(crate) async fn o1_an_observer_that_panics_harms_no_tenure<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = panics.clone();
    let a = fleet.replica_with("a", |options| {
        options.observer = Some(Arc::new(move |event| {
            counted.fetch_add(1, Ordering::Relaxed);
            panic!("an observer that fails at {}", event.name());
        }));
    });
    let b = fleet.replica("b");
    let key = tenant("o1");
    let handle = a.router.open(&key).await.expect("a opens");
    assert!(handle.is_open());
    insert(&handle, "k-1");
    handle.renew().await.expect("the lease is a's to renew");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");

    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1"]);
    assert!(panics.load(Ordering::Relaxed) >= 3, "it was told, and panicked, each time");
}
