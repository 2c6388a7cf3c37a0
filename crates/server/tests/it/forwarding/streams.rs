//! Bodies that are longer than anything that is kept.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, response::IntoResponse as _};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use reqwest::Method;
use sha2::{Digest as _, Sha256};

use super::fleet::{Fleet, Played};
use crate::{
    follow::Followed,
    served::{eventually, path_of, pause, soon},
};

const TENANT: &str = "acme/user-1";
const HOUR: Duration = Duration::from_secs(3_600);
const PIECE: usize = 64 * 1024;
const LEN: u64 = 64 * 1024 * 1024;
/// What the sockets of two connections and their readers may hold.
const HELD_MAX: u64 = 24 * 1024 * 1024;

/// 64 MiB that count themselves as they are taken.
fn pieces(taken: Arc<AtomicU64>) -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send {
    stream::iter(0..LEN / PIECE as u64).map(move |number| {
        taken.fetch_add(PIECE as u64, Ordering::SeqCst);
        Ok(Bytes::from(vec![u8::try_from(number % 251).unwrap(); PIECE]))
    })
}

/// Until a count stands still.
async fn settled(count: &AtomicU64) -> u64 {
    loop {
        let before = count.load(Ordering::SeqCst);
        pause(Duration::from_millis(300)).await;
        if count.load(Ordering::SeqCst) == before {
            return before;
        }
    }
}

async fn digest_of(mut pieces: impl futures::Stream<Item = Bytes> + Unpin) -> [u8; 32] {
    let mut digest = Sha256::new();
    while let Some(piece) = pieces.next().await {
        digest.update(&piece);
    }
    digest.finalize().into()
}

async fn expected() -> [u8; 32] {
    digest_of(Box::pin(pieces(Arc::default()).map(Result::unwrap_or_default))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_passes_no_faster_than_its_reader_takes_it() {
    let fleet = Fleet::new();
    let replica = fleet.start().await;
    let taken = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&taken);
    let played = Played::start(move |_| {
        let body = Body::from_stream(pieces(Arc::clone(&counting)));
        async move { ([("content-length", LEN.to_string())], body).into_response() }
    })
    .await;
    fleet.give(TENANT, "ghost", &played.endpoint, HOUR).await;
    let response = replica.request(Method::GET, &format!("{}/export", path_of(TENANT))).send().await.unwrap();
    assert_eq!(response.content_length(), Some(LEN));
    let ahead = settled(&taken).await;
    assert!(ahead < HELD_MAX, "{ahead} bytes are held while nobody reads");
    let read = digest_of(Box::pin(response.bytes_stream().map(Result::unwrap))).await;
    assert_eq!(read, expected().await);
    eventually("its place came back", async || {
        replica.metric("leasehold_http_requests_in_flight").await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_passes_no_faster_than_its_owner_takes_it() {
    let fleet = Fleet::new();
    let replica = fleet.start().await;
    let taken = Arc::new(AtomicU64::new(0));
    let (go, gone) = tokio::sync::watch::channel(false);
    let played = Played::start(move |request| {
        let mut gone = gone.clone();
        async move {
            gone.wait_for(|gone| *gone).await.unwrap();
            let body = request.into_body().into_data_stream().map(Result::unwrap);
            hex::encode(digest_of(Box::pin(body)).await).into_response()
        }
    })
    .await;
    fleet.give(TENANT, "ghost", &played.endpoint, HOUR).await;
    let request = replica
        .request(Method::PUT, &format!("{}/import", path_of(TENANT)))
        .header("content-type", "application/vnd.sqlite3")
        .body(reqwest::Body::wrap_stream(pieces(Arc::clone(&taken))));
    let sending = tokio::spawn(request.send());
    eventually("it began", async || taken.load(Ordering::SeqCst) > 0).await;
    let ahead = settled(&taken).await;
    assert!(ahead < HELD_MAX, "{ahead} bytes are held while the owner reads none");
    go.send_replace(true);
    let answered = sending.await.unwrap().unwrap();
    assert_eq!(answered.text().await.unwrap(), hex::encode(expected().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_goes_out_and_in_through_other_replicas() {
    pass_a_ledger(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_a_ledger_goes_out_and_in_through_other_replicas() {
    pass_a_ledger(Fleet::new().over_tls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_on_the_cloud_pair_a_ledger_goes_out_and_in_through_other_replicas() {
    pass_a_ledger(Fleet::cloud().await.over_tls()).await;
}

async fn pass_a_ledger(fleet: Fleet) {
    let (one, two) =
        (fleet.start().await, fleet.start_with(|config| config.limits.body_bytes_max = 256 * 1024).await);
    one.append("acme/from", "a").await;
    let fill = serde_json::json!({ "statements": [
        { "sql": "create table t (a)" },
        { "sql": "insert into t select randomblob(4096) from (with recursive n(i) as (select 1 union all select i + 1 from n where i < 512) select i from n)" },
    ]});
    one.post_json(&format!("{}/execute", path_of("acme/from")), &fill).await.ok(200);
    one.put(&path_of("acme/to")).await.ok(201);
    let exported = two.get(&format!("{}/export", path_of("acme/from"))).await;
    assert!(exported.body.len() > 2 * 1024 * 1024, "{}", exported.body.len());
    let digest = exported.headers["content-digest"].to_str().unwrap().to_owned();
    let sum = base64_of(&Sha256::digest(&exported.body));
    assert_eq!(digest, format!("sha-256=:{sum}:"));
    // Longer than what is kept to be sent again: it goes to the owner at once.
    let request = two
        .request(Method::PUT, &format!("{}/import", path_of("acme/to")))
        .header("content-type", "application/vnd.sqlite3")
        .body(exported.body);
    assert_eq!(two.send(request).await.ok(201)["events"], 1);
    let count = serde_json::json!({ "sql": "select count(*), sum(length(a)) from t" });
    let counted = two.post_json(&format!("{}/query", path_of("acme/to")), &count).await.ok(200);
    assert_eq!(counted["rows"], serde_json::json!([[512, 512 * 4096]]));
    assert_eq!(two.metric("leasehold_tenants_open").await, 0);
}

fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_told_when_the_replica_that_forwards_it_goes() {
    end_a_stream(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_a_stream_is_told_when_the_replica_that_forwards_it_goes() {
    end_a_stream(Fleet::new().over_tls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_on_the_cloud_pair_a_stream_is_told_when_the_replica_that_forwards_it_goes() {
    end_a_stream(Fleet::cloud().await.over_tls()).await;
}

async fn end_a_stream(fleet: Fleet) {
    let (owner, other) = (fleet.start().await, fleet.start().await);
    owner.append(TENANT, "a").await;
    let mut stream = Followed::open(&other, "", None).await;
    assert_eq!(stream.event().await.0, "1-1");
    owner.append(TENANT, "b").await;
    assert_eq!(stream.event().await.0, "1-2");
    assert_eq!(other.metric("leasehold_followers").await, 1);
    soon("the end", other.stop()).await.unwrap();
    let moved = stream.next().await.unwrap();
    assert!(moved.contains(&"event: moved".to_owned()), "{moved:?}");
    assert!(moved.iter().any(|line| line.contains("\"after\":\"1-2\"")), "{moved:?}");
    assert_eq!(stream.next().await, None);
    assert_eq!(owner.kinds(TENANT).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_hangs_up_leaves_the_owner_too() {
    let fleet = Fleet::new();
    let (owner, other) = (fleet.start().await, fleet.start().await);
    owner.append(TENANT, "a").await;
    let mut stream = Followed::open(&other, "", None).await;
    stream.event().await;
    assert_eq!(owner.metric("leasehold_followers").await, 1);
    drop(stream);
    for replica in [&owner, &other] {
        eventually("the places came back", async || replica.metric("leasehold_followers").await == 0).await;
    }
}
