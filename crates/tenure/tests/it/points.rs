//! Where a tenure stands is told before and after each step, in the order of the protocol, and an append tells nothing.

use std::sync::{Arc, Mutex};

use leasehold_tenure::{Backends, Router};
use leasehold_testkit::{
    EmbeddedPair, Events, Fleet, ManualClock, PATIENCE, event, insert, keys_of, tenant, within,
};
use leasehold_types::{LeaseKey, Point, Points};

/// What was reached, in order.
#[derive(Debug, Default)]
struct Trace(Mutex<Vec<Point>>);

impl Points for Trace {
    fn reached(&self, point: Point, key: Option<&LeaseKey>) {
        assert!(key.is_some_and(|key| *key == tenant("points")), "{point}: {key:?}");
        self.0.lock().expect("a trace").push(point);
    }
}

impl Trace {
    /// The names of the acts since the last look, each of which must have ended before the next began. What sweeps do beside
    /// the rest is left out.
    fn acts(&self) -> Vec<String> {
        let points = std::mem::take(&mut *self.0.lock().expect("a trace"));
        let points: Vec<_> =
            points.into_iter().filter(|point| !point.act().name().starts_with("sweep.")).collect();
        let (pairs, rest) = points.as_chunks::<2>();
        assert!(rest.is_empty(), "{points:?}");
        for [before, after] in pairs {
            assert_eq!((*before, *after), (Point::Before(before.act()), Point::After(before.act())));
        }
        pairs.iter().map(|[before, _]| before.act().name().to_owned()).collect()
    }
}

#[tokio::test]
async fn each_step_is_told_before_and_after_it_and_an_append_tells_nothing() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (trace, key) = (Arc::new(Trace::default()), tenant("points"));
    let backends = Backends { points: trace.clone(), ..fleet.backends(&ManualClock::new()) };
    let router = Router::new(fleet.options("a", "a", &Events::default(), |_| ()), backends)
        .expect("options that are valid");

    let handle = router.open(&key).await.expect("a opens");
    let opening = [
        "open.acquire",
        "open.root",
        "open.floors",
        "open.list",
        "open.pin",
        "open.renew",
        "open.floors",
        "open.salvage",
        "open.install",
        "open.ledger",
        "open.serve",
    ];
    assert_eq!(trace.acts(), opening);

    insert(&handle, "k-1");
    handle.append(vec![event("k-2")]).await.expect("appended");
    assert_eq!(trace.acts(), [""; 0]);

    handle.snapshot().await.expect("published");
    let publish = ["image", "encode", "upload", "manifest", "row", "deadline"];
    assert_eq!(trace.acts(), publish.map(|done| format!("publish.{done}")));

    insert(&handle, "k-3");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    let handoff = ["handoff.gate".to_owned(), "handoff.flush".to_owned()]
        .into_iter()
        .chain(publish.map(|done| format!("handoff.{done}")))
        .chain(["release.discard", "release.row", "release.end"].map(str::to_owned));
    assert_eq!(trace.acts(), handoff.collect::<Vec<_>>());

    let handle = router.open(&key).await.expect("a opens again");
    assert_eq!(keys_of(&handle), ["k-1", "k-2", "k-3"]);
    let reopening =
        [&opening[..4], &["open.read_entry", "open.seal", "open.pin", "open.fetch"], &opening[5..]];
    assert_eq!(trace.acts(), reopening.concat());

    within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    within(PATIENCE, "the end", handle.ended()).await;
    let forget = [
        "forget.gate",
        "forget.raise_floor",
        "forget.floor_object",
        "forget.list",
        "forget.delete",
        "forget.delete",
        "forget.list",
        "forget.local",
        "forget.receipt",
        "release.row",
        "release.end",
    ];
    assert_eq!(trace.acts(), forget);
}
