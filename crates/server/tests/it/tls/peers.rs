//! Replicas that know one another by their certificates.

use std::{sync::Arc, time::Duration};

use leasehold_server::Edges;
use leasehold_testkit::ManualTimer;
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpListener;

use super::authority::Authority;
use crate::{
    forwarding::fleet::Fleet,
    served::{Answered, Served, eventually, path_of},
};

const TENANT: &str = "acme/user-1";
const A_LOOK: Duration = Duration::from_secs(6);

async fn impatient(replica: &Served) -> Answered {
    let request = replica.request(Method::POST, &format!("{}/events", path_of(TENANT)));
    replica.send(request.header("Leasehold-Timeout", "0").json(&json!({ "kind": "a", "actor": "ada" }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_another_authority_is_sent_nothing() {
    let fleet = Fleet::new().over_tls();
    let owner = fleet.start().await;
    owner.append(TENANT, "a").await;
    let stranger = Authority::in_dir(&fleet.dir.path().join("strangers"));
    let other = fleet.start_with(|config| config.peers.ca_file = Some(stranger.ca_file())).await;
    let problem = impatient(&other).await.problem(502, "owner_unreachable");
    assert_eq!(problem["executed"], "no", "{problem}");
    // One that knows the authority, and so the owner, is answered.
    impatient(&fleet.start().await).await.ok(201);
    assert_eq!(owner.metric("leasehold_peers_refused_total").await, 0, "it was shown no secret");
    assert_eq!(owner.kinds(TENANT).await, ["a", "a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_has_ended_or_is_another_hosts_is_refused() {
    let fleet = Fleet::new().over_tls();
    let authority = fleet.authority();
    let ended = fleet.start_with(|config| config.tls = authority.issue_until("ended", 2021)).await;
    let other = fleet.start().await;
    ended.router.open(&TENANT.parse().unwrap()).await.unwrap();
    let problem = impatient(&other).await.problem(502, "owner_unreachable");
    assert_eq!(problem["executed"], "no", "{problem}");
    // The other way round nothing has ended.
    other.router.open(&"acme/user-3".parse().unwrap()).await.unwrap();
    let events = format!("{}/events", path_of("acme/user-3"));
    assert_eq!(ended.get(&events).await.status, 200);

    // 127.0.0.2 leads to this machine too, and the certificate is none for it.
    let elsewhere = format!("https://127.0.0.2:{}", other.address.port());
    fleet.give("acme/user-2", "ghost", &elsewhere, Duration::from_secs(3_600)).await;
    let request = other.request(Method::GET, &format!("{}/events", path_of("acme/user-2")));
    other.send(request.header("Leasehold-Timeout", "0")).await.problem(502, "owner_unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn authorities_that_change_are_taken_up() {
    let fleet = Fleet::new().over_tls();
    let owner = fleet.start().await;
    owner.append(TENANT, "a").await;
    let stranger = Authority::in_dir(&fleet.dir.path().join("strangers"));
    let bundle = fleet.dir.path().join("bundle.pem");
    std::fs::copy(stranger.ca_file(), &bundle).unwrap();
    let mut config = fleet.config();
    config.peers.ca_file = Some(bundle.clone());
    let timer = ManualTimer::new();
    let edges = Edges { timer: Arc::new(timer.clone()), ..Edges::system() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let trusts = fleet.authority().ca_file();
    let other = Served::start_trusting(&trusts, listener, config, edges, fleet.stores.clone()).await;
    impatient(&other).await.problem(502, "owner_unreachable");

    // The new one beside the old one, as an authority is changed.
    let both = [&stranger.ca_file(), &trusts].map(|file| std::fs::read_to_string(file).unwrap());
    std::fs::write(&bundle, both.concat()).unwrap();
    eventually("the authorities are taken up", async || {
        timer.elapse(A_LOOK);
        other.metric("leasehold_tls_reloads_total{of=\"peers\",outcome=\"done\"}").await == 1
    })
    .await;
    impatient(&other).await.ok(201);
    assert_eq!(owner.kinds(TENANT).await, ["a", "a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_turns_to_tls_one_by_one() {
    let fleet = Fleet::new().over_tls();
    // It speaks plain HTTP still, and knows the authority already.
    let plain = fleet.start_with(|config| config.tls = leasehold_server::TlsSettings::default()).await;
    let turned = fleet.start().await;
    for (owner, other, tenant) in [(&plain, &turned, "acme/plain"), (&turned, &plain, "acme/turned")] {
        owner.append(tenant, "a").await;
        other.append(tenant, "b").await;
        assert_eq!(owner.kinds(tenant).await, ["a", "b"]);
        assert!(owner.router.handle_of(&tenant.parse().unwrap()).is_some());
    }
    assert!(plain.endpoint.starts_with("http://") && turned.endpoint.starts_with("https://"));
}
