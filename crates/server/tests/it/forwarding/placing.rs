//! Tenants open where they belong, and go where they belong.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{http::StatusCode, response::IntoResponse as _};
use leasehold_server::Config;
use reqwest::Method;
use serde_json::json;

use super::{
    fleet::{Fleet, Played, nobodys_address},
    moving::{all_kinds, writer},
};
use crate::{
    follow::Followed,
    served::{Served, path_of, pause, soon},
};

/// Longer than a test: who was announced once is there to its end.
const LONG: Duration = Duration::from_secs(300);
/// After how long of the same fleet shares are given, where a test waits for it.
const TTL: Duration = Duration::from_secs(3);

/// Each scenario over both pairs of backends.
macro_rules! on_each_pair {
    ($($scenario:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                super::$scenario(super::Fleet::new().placed()).await;
            })*
        }
        mod cloud {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                super::$scenario(super::Fleet::cloud().await.placed()).await;
            })*
        }
    };
}

/// Those that open and move tenants, over TLS.
macro_rules! over_tls_on_each_pair {
    ($($scenario:ident),* $(,)?) => {
        mod over_tls {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                super::$scenario(super::Fleet::new().over_tls().placed()).await;
            })*
        }
        mod over_tls_on_the_cloud_pair {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                super::$scenario(super::Fleet::cloud().await.over_tls().placed()).await;
            })*
        }
    };
}

over_tls_on_each_pair!(
    a_tenant_opens_at_the_same_place_wherever_it_is_asked_for,
    what_leaves_is_open_elsewhere_before_anybody_asks,
);

on_each_pair!(
    a_tenant_opens_at_the_same_place_wherever_it_is_asked_for,
    what_is_not_there_goes_nowhere,
    one_that_is_full_gets_no_more,
    a_place_that_does_not_open_it_is_passed_over,
    who_joins_is_given_a_share_and_no_client_sees_it,
    what_leaves_is_open_elsewhere_before_anybody_asks,
    a_drain_waits_for_nobody_who_is_told,
    one_that_cannot_be_handed_off_stays_and_another_one_goes,
);

fn tenants(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("acme/user-{number}")).collect()
}

fn long(config: &mut Config) {
    config.ttl = LONG;
    config.placement.rebalance = false;
}

/// Which of the replicas has the tenant open: their own state, nobody is asked.
fn holders<'a>(replicas: &[&'a Served], tenant: &str) -> Vec<&'a str> {
    let key = tenant.parse().unwrap();
    let holding = replicas.iter().filter(|replica| replica.router.handle_of(&key).is_some());
    holding.map(|replica| replica.url.as_str()).collect()
}

fn open_on(replica: &Served) -> usize {
    replica.router.handles().len()
}

/// Waits for up to a minute, on a busy machine too.
async fn at_last<F: AsyncFn() -> bool>(what: &str, done: F) {
    for _ in 0..1_200 {
        if done().await {
            return;
        }
        pause(Duration::from_millis(50)).await;
    }
    panic!("not within a minute: {what}");
}

/// Until no replica goes by what it read of the fleet before: it uses that for a quarter of a second.
async fn until_read_anew() {
    pause(Duration::from_millis(400)).await;
}

/// Until `asked` is told that the replicas have so many open, in the order of their ids.
async fn until_told(asked: &Served, open: &[u64]) {
    at_last("the fleet knows its loads", async || {
        let fleet = asked.get("/v1/replicas").await.ok(200);
        let told = fleet["replicas"].as_array().unwrap().iter();
        told.map(|replica| replica["open_tenants"].as_u64().unwrap()).eq(open.iter().copied())
    })
    .await;
    until_read_anew().await;
}

async fn moves(replica: &Served, cause: &str, outcome: &str) -> u64 {
    let name = format!("leasehold_placement_moves_total{{cause=\"{cause}\",outcome=\"{outcome}\"}}");
    replica.metric(&name).await
}

async fn forwarded(replica: &Served) -> u64 {
    let mut count = 0;
    for outcome in ["answered", "moved", "unreachable", "lost", "late", "refused"] {
        let name = format!("leasehold_forwarded_requests_total{{outcome=\"{outcome}\"}}");
        count += replica.metric(&name).await;
    }
    count
}

async fn a_tenant_opens_at_the_same_place_wherever_it_is_asked_for(fleet: Fleet) {
    // Without a bound that matters, the hash alone decides.
    let change = |config: &mut Config| {
        long(config);
        config.placement.load_slack = 10.0;
    };
    let (a, b, c) =
        (fleet.start_with(change).await, fleet.start_with(change).await, fleet.start_with(change).await);
    let all = [&a, &b, &c];
    until_told(&a, &[0, 0, 0]).await;
    let tenants = tenants(18);
    let mut first: BTreeMap<&String, &str> = BTreeMap::new();
    for (asked, is_again) in [(&a, false), (&b, true), (&c, true)] {
        for tenant in &tenants {
            assert_eq!(holders(&all, tenant), [""; 0]);
            asked.append(tenant, "x").await;
            let holders = holders(&all, tenant);
            assert_eq!(holders.len(), 1, "{tenant}");
            if is_again {
                assert_eq!(first[tenant], holders[0], "{tenant}");
            }
            first.insert(tenant, holders[0]);
            // A tenant that is held is answered by whoever holds it.
            assert_eq!(a.kinds(tenant).await, b.kinds(tenant).await);
            asked.post(&format!("{}/handoff", path_of(tenant))).await.ok(200);
        }
    }
    let places: BTreeSet<&str> = first.values().copied().collect();
    assert_eq!(places.len(), 3, "{first:?}");
}

async fn what_is_not_there_goes_nowhere(fleet: Fleet) {
    let (a, b) = (fleet.start_with(long).await, fleet.start_with(long).await);
    let tenants = tenants(6);
    for tenant in &tenants {
        let path = path_of(tenant);
        let query = json!({ "sql": "select 1" });
        for replica in [&a, &b] {
            replica.get(&format!("{path}/events")).await.problem(404, "tenant_unknown");
            replica.post_json(&format!("{path}/query"), &query).await.problem(404, "tenant_unknown");
            replica.get(&path).await.problem(404, "tenant_unknown");
            replica.delete(&path).await.problem(404, "tenant_unknown");
        }
    }
    assert_eq!((forwarded(&a).await, forwarded(&b).await), (0, 0));
    for tenant in &tenants {
        a.append(tenant, "x").await;
        a.delete(&path_of(tenant)).await.ok(200);
    }
    let before = (forwarded(&a).await, forwarded(&b).await);
    for tenant in &tenants {
        for replica in [&a, &b] {
            let events = format!("{}/events", path_of(tenant));
            replica.get(&events).await.problem(410, "tenant_forgotten");
            let event = json!({ "kind": "x", "actor": "ada" });
            replica.post_json(&events, &event).await.problem(410, "tenant_forgotten");
        }
    }
    let after = (forwarded(&a).await, forwarded(&b).await);
    // What was known of an owner may be asked once more; then it is known that there is none.
    assert!(after.0 <= before.0 + 6 && after.1 == before.1, "{before:?} {after:?}");
}

async fn one_that_is_full_gets_no_more(fleet: Fleet) {
    let even = |config: &mut Config| {
        long(config);
        config.placement.load_slack = 0.0;
    };
    let a = fleet.start_with(even).await;
    let tenants = tenants(20);
    for tenant in &tenants[..10] {
        a.put(&path_of(tenant)).await.ok(201);
    }
    let b = fleet.start_with(even).await;
    until_told(&b, &[10, 0]).await;
    for (number, tenant) in tenants[10..].iter().enumerate() {
        [&a, &b][number % 2].put(&path_of(tenant)).await.ok(201);
        assert_eq!((open_on(&a), open_on(&b)), (10, number + 1), "{tenant}");
    }
    until_told(&a, &[10, 10]).await;
    let told = a.get("/v1/replicas").await.ok(200);
    assert_eq!((&told["fair_share"], &told["share_max"]), (&json!(10), &json!(10)));
}

async fn a_place_that_does_not_open_it_is_passed_over(fleet: Fleet) {
    let (_reserved, gone) = nobodys_address();
    let asked = Arc::new(AtomicUsize::new(0));
    let refusing = |status: u16, code: &'static str| {
        let asked = Arc::clone(&asked);
        Played::start(move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            async move {
                let body = json!({ "code": code, "executed": "no" }).to_string();
                let kind = [("content-type", "application/problem+json")];
                (StatusCode::from_u16(status).unwrap(), kind, body).into_response()
            }
        })
    };
    let (full, leaving) = (refusing(429, "overloaded").await, refusing(503, "draining").await);
    let (stranger, cut_off) =
        (refusing(403, "peer_refused").await, refusing(503, "lease_store_unavailable").await);
    fleet.announce("gone", &format!("http://{gone}")).await;
    for (replica, played) in
        [("full", &full), ("leaving", &leaving), ("stranger", &stranger), ("cut-off", &cut_off)]
    {
        fleet.announce(replica, &played.endpoint).await;
    }
    let a = fleet
        .start_with(|config| {
            long(config);
            config.placement.load_slack = 10.0;
        })
        .await;
    for tenant in tenants(24) {
        let request = a.request(Method::POST, &format!("{}/events", path_of(&tenant)));
        let answered = soon("an answer", a.send(request.json(&json!({ "kind": "x", "actor": "ada" })))).await;
        assert_eq!(answered.ok(201)["position"], "1-1", "{tenant}");
    }
    assert_eq!(open_on(&a), 24);
    assert!(asked.load(Ordering::SeqCst) > 0);
    assert!(a.metric("leasehold_forwarded_requests_total{outcome=\"unreachable\"}").await > 0);
}

async fn who_joins_is_given_a_share_and_no_client_sees_it(fleet: Fleet) {
    let quick = |config: &mut Config| {
        (config.ttl, config.margin) = (TTL, TTL / 6);
        config.placement.moves_pause = Duration::from_millis(100);
    };
    let a = fleet.start_with(quick).await;
    let tenants = tenants(18);
    for tenant in &tenants {
        a.put(&path_of(tenant)).await.ok(201);
    }
    let paused = "acme/paused";
    a.append(paused, "x").await;
    a.post(&format!("{}/pause", path_of(paused))).await.ok(200);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = tenants
        .iter()
        .take(6)
        .enumerate()
        .map(|(number, tenant)| {
            writer(vec![a.url.clone()], tenant.clone(), number % 2 == 0, Arc::clone(&stop))
        })
        .collect();
    let (b, c) = (fleet.start_with(quick).await, fleet.start_with(quick).await);
    let all = [&a, &b, &c];
    // ceil(1.25 x 18 / 3)
    at_last("every share is within the bound", async || {
        let open = all.map(open_on);
        open.iter().sum::<usize>() == 18 && open.iter().all(|open| *open <= 8)
    })
    .await;
    // Nothing goes back and forth: it comes to rest, and stays.
    let before = AtomicU64::new(0);
    at_last("nothing moves any more", async || {
        pause(TTL).await;
        let now = moves(&a, "join", "moved").await + moves(&a, "share", "moved").await;
        before.swap(now, Ordering::SeqCst) == now
    })
    .await;
    stop.store(true, Ordering::SeqCst);
    let mut errors = Vec::new();
    for (writer, tenant) in writers.into_iter().zip(&tenants) {
        let (acknowledged, failed) = soon("a writer", writer).await.unwrap();
        errors.extend(failed);
        assert_eq!(all_kinds(&c, tenant).await, acknowledged, "{tenant}: each once, in its order");
    }
    assert!(errors.is_empty(), "{errors:#?}");
    let moved = moves(&a, "join", "moved").await + moves(&a, "share", "moved").await;
    assert!((10..=18).contains(&moved), "{moved}: each one once");
    for replica in [&b, &c] {
        for cause in ["join", "share"] {
            assert_eq!(moves(replica, cause, "moved").await, 0, "what was given stays");
        }
    }
    assert_eq!(holders(&all, paused), [""; 0]);
    assert_eq!(a.metric("leasehold_placement_fair_share").await, 6);
    assert_eq!(a.metric("leasehold_placement_share_max").await, 8);
}

async fn what_leaves_is_open_elsewhere_before_anybody_asks(fleet: Fleet) {
    let tenants = tenants(9);
    let a = fleet.start_with(long).await;
    for tenant in &tenants {
        a.append(tenant, "x").await;
    }
    let (_reserved, gone) = nobodys_address();
    fleet.announce("gone", &format!("http://{gone}")).await;
    let (b, c) = (fleet.start_with(long).await, fleet.start_with(long).await);
    until_read_anew().await;
    assert_eq!(soon("the drain", a.post("/v1/drain")).await.ok(200), json!({ "failed": [] }));
    at_last("they are open elsewhere", async || {
        tenants.iter().all(|tenant| holders(&[&b, &c], tenant).len() == 1)
    })
    .await;
    assert!(open_on(&b) > 0 && open_on(&c) > 0, "{} {}", open_on(&b), open_on(&c));
    at_last("that is counted", async || moves(&a, "drain", "moved").await == 9).await;
    let asked = tenants.iter().map(async |tenant| a.kinds(tenant).await);
    for kinds in futures::future::join_all(asked).await {
        assert_eq!(kinds, ["x"]);
    }
    assert_eq!(soon("its end", a.stop()).await.map_err(|error| error.to_string()), Ok(()));
}

async fn a_drain_waits_for_nobody_who_is_told(fleet: Fleet) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let hanging = Played::start(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        async {
            std::future::pending::<()>().await;
            ().into_response()
        }
    })
    .await;
    let warm = fleet.start_with(long).await;
    let cold = |config: &mut Config| {
        long(config);
        config.placement.warm_within = Duration::ZERO;
    };
    let tenants = tenants(12);
    for tenant in &tenants {
        warm.append(tenant, "x").await;
    }
    fleet.announce("hanging", &hanging.endpoint).await;
    until_read_anew().await;
    // Eight are told side by side and none of them is answered: twelve handoffs are done all the same.
    assert_eq!(soon("the drain", warm.post("/v1/drain")).await.ok(200), json!({ "failed": [] }));
    assert_eq!(open_on(&warm), 0);
    at_last("somebody is told", async || asked.load(Ordering::SeqCst) == 8).await;
    drop(hanging);
    at_last("the others are told too", async || moves(&warm, "drain", "unopened").await == 12).await;
    let cold = fleet.start_with(cold).await;
    assert_eq!(cold.kinds(&tenants[0]).await, ["x"], "who was not told opens it when it is asked");
    let told = |outcome: &'static str| moves(&cold, "drain", outcome);
    cold.post("/v1/drain").await.ok(200);
    assert_eq!(
        (told("moved").await, told("unopened").await),
        (0, 0),
        "what is idle for long is left to be asked for"
    );
}

async fn one_that_cannot_be_handed_off_stays_and_another_one_goes(fleet: Fleet) {
    let even = |config: &mut Config| {
        (config.ttl, config.margin) = (TTL, TTL / 6);
        config.drain_timeout = Duration::from_millis(500);
        config.placement.load_slack = 0.0;
        config.placement.moves_max = 1;
    };
    let a = fleet.start_with(even).await;
    let (stuck, followed) = ("acme/stuck", "acme/user-1");
    a.append(stuck, "x").await;
    let handle = a.router.handle_of(&stuck.parse().unwrap()).unwrap();
    let (let_go, held) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_| async { held.await.ok() }));
    a.append(followed, "x").await;
    let mut stream = Followed::open(&a, "", None).await;
    assert_eq!(stream.event().await.0, "1-1");
    // Both are in use, and the one that is stuck has been quiet for longer: it is the first to go.
    let b = fleet.start_with(even).await;
    at_last("the other one is handed over", async || holders(&[&b], followed).len() == 1).await;
    assert_eq!(holders(&[&a, &b], stuck), [a.url.as_str()]);
    let count = async |outcome| moves(&a, "join", outcome).await + moves(&a, "share", outcome).await;
    at_last("both are counted", async || (count("moved").await, count("stayed").await) == (1, 1)).await;
    let moved = stream.next().await.unwrap();
    assert!(moved.contains(&"event: moved".to_owned()), "{moved:?}");
    let_go.send(()).unwrap();
    work.await.unwrap().unwrap();
    assert_eq!(a.append(stuck, "y").await, "1-2", "it serves on where it is");
    assert_eq!(a.kinds(followed).await, ["x"]);
}
