//! A real Azurite behind a network that fails: nothing is lost, nothing is told that is not so.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use leasehold_blob::{AzureCredential, AzureStore, BlobError, BlobStore, ContainerReach, Payload, Put};
use leasehold_testkit::{Cue, Exchange, Fault, FaultProxy, ManualTimer};

use super::{
    account::{self, RealTimer, container, options, part},
    shims::{key, noise},
};

/// A store whose way leads through a proxy, and one beside it.
async fn behind_a_proxy() -> (AzureStore, AzureStore, FaultProxy) {
    let endpoint = part("BlobEndpoint");
    let (target, path) = endpoint.trim_start_matches("http://").split_once('/').unwrap();
    let target: SocketAddr = target.parse().unwrap();
    let proxy = FaultProxy::start(target).await.unwrap();
    let mut through = options(AzureCredential::AccountKey(part("AccountKey").as_str().into()), &container());
    through.account = Some(part("AccountName"));
    through.endpoint = Some(format!("http://{}/{path}", proxy.addr()));
    let beside = account::shared(&through.container);
    let (store, beside) = (AzureStore::connect(through).unwrap(), AzureStore::connect(beside).unwrap());
    assert!(beside.create_container().await.unwrap());
    (store, beside, proxy)
}

fn body(text: &'static str) -> Payload {
    Payload::Bytes(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_our_own() {
    let (store, beside, proxy) = behind_a_proxy().await;
    let lost = proxy.plan(Cue::request("PUT "), Fault::LoseAnswer);
    assert_eq!(store.put_if_absent(&key("t/1"), body("ours")).await.unwrap(), Put::Created);
    assert!(lost.is_met());
    // And somebody else's is not.
    assert_eq!(beside.put_if_absent(&key("t/2"), body("theirs")).await.unwrap(), Put::Created);
    let lost = proxy.plan(Cue::request("PUT "), Fault::LoseAnswer);
    assert_eq!(store.put_if_absent(&key("t/2"), body("ours")).await.unwrap(), Put::Exists);
    assert!(lost.is_met());
    assert_eq!(beside.get(&key("t/2"), 10).await.unwrap().unwrap(), "theirs");
}

#[tokio::test]
async fn blocks_and_their_list_survive_the_loss_of_every_answer() {
    let (store, beside, proxy) = behind_a_proxy().await;
    let image = noise(17 * 1024 * 1024);
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("image");
    std::fs::write(&from, &image).unwrap();
    let lost = [
        proxy.plan(Cue::request("comp=block&"), Fault::LoseAnswer),
        proxy.plan(Cue::request("comp=block "), Fault::LoseAnswer),
        proxy.plan(Cue::request("comp=blocklist"), Fault::LoseAnswer),
    ];
    assert_eq!(store.put_if_absent(&key("t/1"), Payload::File(from)).await.unwrap(), Put::Created);
    assert!(lost[2].is_met() && lost.iter().filter(|lost| lost.is_met()).count() >= 2);
    assert!(beside.get(&key("t/1"), u64::MAX).await.unwrap().unwrap() == image);
}

/// Which request of the store's an exchange was, by what went over the network. The service has answered it.
fn answered(exchange: &Exchange) -> &'static str {
    let (request, answer) =
        (String::from_utf8_lossy(&exchange.request), String::from_utf8_lossy(&exchange.answer));
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    let head =
        ["PUT /", "GET /", "HEAD /", "DELETE /"].iter().filter_map(|method| request.find(method)).min();
    let head = &request[head.expect("a request line")..];
    let line = head.lines().next().unwrap();
    let (method, target) = line.split_once(' ').unwrap();
    match method {
        "PUT" if target.contains("restype=container") => "create_container",
        "PUT" if target.contains("comp=blocklist") => "commit_blocks",
        "PUT" if target.contains("comp=block") => "put_block",
        "PUT" => "put",
        "GET" if target.contains("deleted") => "list_kept",
        "GET" if target.contains("comp=list") && !target.contains("include=") => "reach",
        "GET" if target.contains("comp=list") => "list",
        "GET" if head.contains("bytes=0-") => "begin",
        "GET" => "continue",
        "HEAD" if target.contains("restype=container") => "settings",
        "HEAD" if head.contains("if-match:") => "measure",
        "HEAD" => "look",
        "DELETE" => "delete",
        _ => panic!("an unknown request: {line}"),
    }
}

/// Each request of each operation in turn: the loop ends when an operation has no request left whose answer could be lost, so that a
/// request that is added later is among them. And all operations together make every request that the store may make.
#[tokio::test]
async fn every_request_of_every_operation_survives_the_loss_of_its_answer() {
    // In every request that is made of the blob service, once.
    const ANY: &str = "x-ms-version:";
    let dir = tempfile::tempdir().unwrap();
    let image = noise(17 * 1024 * 1024);
    let from = dir.path().join("image");
    std::fs::write(&from, &image).unwrap();
    let prefix = "t/".parse().unwrap();
    let len = Some(image.len() as u64);
    let mut lost_answers = BTreeSet::new();
    for operation in 0..13 {
        let mut requests = 0;
        loop {
            let (store, beside, proxy) = behind_a_proxy().await;
            beside.put_if_absent(&key("t/1"), body("theirs")).await.unwrap();
            if matches!(operation, 4 | 5) {
                beside.put_if_absent(&key("u/image"), Payload::File(from.clone())).await.unwrap();
            }
            let lost = proxy.plan(Cue::request(ANY).after(requests), Fault::LoseAnswer);
            let to = dir.path().join(format!("out-{operation}-{requests}"));
            let file = || Payload::File(from.clone());
            match operation {
                0 => assert_eq!(store.put_if_absent(&key("t/2"), body("ours")).await.unwrap(), Put::Created),
                1 => assert_eq!(store.put_if_absent(&key("t/1"), body("ours")).await.unwrap(), Put::Exists),
                2 => assert_eq!(store.put_if_absent(&key("t/2"), file()).await.unwrap(), Put::Created),
                3 => assert_eq!(store.put_if_absent(&key("t/1"), file()).await.unwrap(), Put::Exists),
                4 => assert!(store.get(&key("u/image"), u64::MAX).await.unwrap().unwrap() == image),
                5 => {
                    assert_eq!(store.download(&key("u/image"), &to).await.unwrap(), len);
                    assert!(std::fs::read(&to).unwrap() == image, "the download differs");
                }
                6 => assert_eq!(store.list(&prefix).await.unwrap().len(), 1),
                7 => assert!(store.delete(&key("t/1")).await.unwrap()),
                8 => assert_eq!(store.delete_prefix(&prefix).await.unwrap(), 1),
                9 => assert_eq!(store.reach(&prefix).await.unwrap(), ContainerReach::Open),
                10 => assert!(store.container_settings().await.unwrap().is_some()),
                11 => assert!(!store.keeps_deleted(&key("t/2")).await.unwrap()),
                // It is there already; said by a request that was repeated, it is taken for our own.
                _ => assert_eq!(store.create_container().await.unwrap(), requests == 0),
            }
            if !lost.is_met() {
                break;
            }
            lost_answers.insert(answered(&lost.exchange()));
            requests += 1;
        }
        // Fewer, and the cue is not what it was.
        let at_least = [1, 2, 4, 5, 4, 4, 1, 1, 2, 1, 1, 1, 1][operation];
        assert!(requests >= at_least, "operation {operation} made {requests} requests");
    }
    let all: BTreeSet<_> = AzureStore::requests().iter().copied().collect();
    assert_eq!(lost_answers, all, "a request that no operation in this list makes");
}

#[tokio::test]
async fn a_request_that_broke_off_is_made_again() {
    let (store, beside, proxy) = behind_a_proxy().await;
    let cut = proxy.plan(Cue::request("PUT "), Fault::CutRequest(40));
    assert_eq!(store.put_if_absent(&key("t/1"), body("whole")).await.unwrap(), Put::Created);
    assert!(cut.is_met());
    assert_eq!(beside.get(&key("t/1"), 10).await.unwrap().unwrap(), "whole");
}

#[tokio::test]
async fn a_download_goes_on_where_it_broke_off() {
    let (store, beside, proxy) = behind_a_proxy().await;
    let image = noise(20 * 1024 * 1024);
    beside.put_if_absent(&key("t/1"), Payload::Bytes(image.clone().into())).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out");
    // In the first range, and in one of those that follow.
    let first = proxy.plan(Cue::request("bytes=0-"), Fault::CutAnswer(3 * 1024 * 1024));
    let later = proxy.plan(Cue::request("bytes=8388608-"), Fault::CutAnswer(5 * 1024 * 1024));
    assert_eq!(store.download(&key("t/1"), &to).await.unwrap(), Some(image.len() as u64));
    assert!(first.is_met() && later.is_met());
    assert!(std::fs::read(&to).unwrap() == image, "the download differs");
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_says_that_there_was_one() {
    let (store, beside, proxy) = behind_a_proxy().await;
    beside.put_if_absent(&key("t/1"), body("x")).await.unwrap();
    let lost = proxy.plan(Cue::request("DELETE "), Fault::LoseAnswer);
    assert!(store.delete(&key("t/1")).await.unwrap());
    assert!(lost.is_met());
    assert!(!store.delete(&key("t/1")).await.unwrap());
}

#[tokio::test]
async fn a_listing_whose_answer_was_lost_is_asked_for_again() {
    let (store, beside, proxy) = behind_a_proxy().await;
    beside.put_if_absent(&key("t/1"), body("x")).await.unwrap();
    for fault in [Fault::LoseAnswer, Fault::CutAnswer(300)] {
        let lost = proxy.plan(Cue::request("comp=list"), fault);
        assert_eq!(store.list(&"t/".parse().unwrap()).await.unwrap().len(), 1);
        assert!(lost.is_met());
    }
}

#[tokio::test]
async fn an_outage_is_an_error_that_passes() {
    let (store, _beside, proxy) = behind_a_proxy().await;
    store.put_if_absent(&key("t/1"), body("x")).await.unwrap();
    proxy.down(true);
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out");
    let errors = [
        store.put_if_absent(&key("t/2"), body("x")).await.unwrap_err(),
        store.get(&key("t/1"), 1).await.unwrap_err(),
        store.download(&key("t/1"), &to).await.unwrap_err(),
        store.list(&"t/".parse().unwrap()).await.unwrap_err(),
        store.delete(&key("t/1")).await.unwrap_err(),
        store.delete_prefix(&"t/".parse().unwrap()).await.unwrap_err(),
    ];
    assert!(errors.iter().all(BlobError::is_transient), "{errors:?}");
    assert!(!to.exists());
    proxy.down(false);
    assert_eq!(store.get(&key("t/1"), 1).await.unwrap().unwrap(), "x");
}

#[tokio::test]
async fn an_outage_in_the_middle_of_a_download_leaves_no_file() {
    let (store, beside, proxy) = behind_a_proxy().await;
    let image = noise(20 * 1024 * 1024);
    beside.put_if_absent(&key("t/1"), Payload::Bytes(image.into())).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out");
    let held = proxy.plan(Cue::request("bytes=16777216-"), Fault::HoldAnswer);
    let (reading, path) = (store.clone(), to.clone());
    let download = tokio::spawn(async move { reading.download(&key("t/1"), &path).await });
    held.met().await;
    proxy.down(true);
    let error = download.await.unwrap().unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(!to.exists());
}

#[tokio::test]
async fn a_dropped_download_leaves_no_file() {
    let (store, beside, proxy) = behind_a_proxy().await;
    beside.put_if_absent(&key("t/1"), Payload::Bytes(noise(9 * 1024 * 1024).into())).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out");
    let held = proxy.plan(Cue::request("bytes=8388608-"), Fault::HoldAnswer);
    let path = to.clone();
    let download = tokio::spawn(async move { store.download(&key("t/1"), &path).await });
    held.met().await;
    assert!(to.exists());
    download.abort();
    assert!(download.await.unwrap_err().is_cancelled());
    assert!(!to.exists());
}

#[tokio::test]
async fn a_silent_service_is_given_up_when_the_limits_are_reached() {
    let (_, beside, proxy) = behind_a_proxy().await;
    let timer = ManualTimer::new();
    let mut through = options(AzureCredential::AccountKey(part("AccountKey").as_str().into()), "images");
    through.account = Some(part("AccountName"));
    through.endpoint = Some(format!("http://{}/{}", proxy.addr(), part("AccountName")));
    through.timer = Arc::new(timer.clone());
    let limits = through.limits;
    let store = AzureStore::connect(through).unwrap();
    let held = proxy.plan(Cue::request("GET "), Fault::HoldAnswer);
    let again = proxy.plan(Cue::request("GET "), Fault::HoldAnswer);
    let getting = tokio::spawn(async move { store.get(&key("t/1"), 1).await });
    held.met().await;
    timer.elapse(limits.request);
    // The limit of the request has ended it; now it waits, as patience does.
    while timer.sleepers() != 2 {
        tokio::task::yield_now().await;
    }
    timer.elapse(limits.wait_max);
    again.met().await;
    timer.elapse(limits.patience);
    let error = getting.await.unwrap().unwrap_err();
    assert!(matches!(error, BlobError::Timeout { .. }) && error.is_transient(), "{error:?}");
    drop(beside);
}

#[tokio::test]
async fn a_slow_service_is_waited_for() {
    let (store, beside, proxy) = behind_a_proxy().await;
    beside.put_if_absent(&key("t/1"), body("x")).await.unwrap();
    let wait = Duration::from_millis(20);
    let slow = Fault::Slow { bytes: 200, wait, timer: Arc::new(RealTimer) };
    drop(proxy.plan(Cue::request("GET "), slow));
    assert_eq!(store.get(&key("t/1"), 1).await.unwrap().unwrap(), "x");
    assert_eq!(proxy.pending(), 0);
}
