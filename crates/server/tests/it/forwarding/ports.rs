//! Replicas that have a port of their own: what each of the two opens, and to whom.

use reqwest::Method;
use serde_json::json;

use super::fleet::{Fleet, SECRET};
use crate::{
    callers::known::{asking, known},
    served::{Answered, Served, path_of},
};

const TENANT: &str = "acme/user-1";
const MARK: (&str, &str) = ("leasehold-forwarded-by", "dev-9");
const SHOWN: (&str, &str) = ("leasehold-peer-secret", SECRET);
const WRONG: (&str, &str) = ("leasehold-peer-secret", "another-secret-altogether");
const CALLER: (&str, &str) = ("leasehold-caller", "service crm read append");

/// Whoever asks for nothing in particular, something that is there, and something that is not.
fn paths() -> [String; 6] {
    ["/healthz", "/readyz", "/metrics", "/v1/replicas", "/nothing", &format!("{}/events", path_of(TENANT))]
        .map(str::to_owned)
}

async fn ask(at: &str, replica: &Served, path: &str, headers: &[(&str, &str)]) -> Answered {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.request(Method::GET, format!("{at}{path}"));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    replica.send(request).await
}

/// On both ports, with each thing that somebody may show.
async fn each_port_opens_to_its_own(fleet: Fleet) {
    let token = known(fleet.stores.tokens.as_ref(), "crm", "*", "read append operate admin").await;
    let replica = fleet.start_with(asking).await;
    let (clients, peers) = (replica.url.clone(), format!("http://{}", replica.peers_address));
    assert_ne!(replica.address, replica.peers_address);
    let bearer = format!("Bearer {}", token.reveal());
    let bearer = ("authorization", bearer.as_str());
    let post =
        replica.request(Method::POST, &format!("{}/events", path_of(TENANT))).header(bearer.0, bearer.1);
    assert_eq!(replica.send(post.json(&json!({ "kind": "a", "actor": "ada" }))).await.status, 201);

    for path in paths() {
        // Whatever a client shows, and whoever only means to be a replica, finds the replicas' port closed.
        for shown in
            [&[][..], &[bearer], &[CALLER], &[MARK], &[SHOWN], &[MARK, WRONG], &[bearer, MARK, WRONG, CALLER]]
        {
            ask(&peers, &replica, &path, shown).await.problem(403, "peer_refused");
        }
        // And a replica the clients', by whatever it shows.
        for shown in [&[MARK][..], &[MARK, SHOWN, CALLER], &[SHOWN], &[bearer, MARK, SHOWN, CALLER]] {
            ask(&clients, &replica, &path, shown).await.problem(403, "peer_refused");
        }
    }
    let events = format!("{}/events", path_of(TENANT));
    assert_eq!(ask(&clients, &replica, "/healthz", &[]).await.status, 200);
    assert_eq!(ask(&clients, &replica, &events, &[bearer]).await.status, 200);
    ask(&clients, &replica, &events, &[]).await.problem(401, "unauthenticated");
    assert_eq!(ask(&peers, &replica, &events, &[MARK, SHOWN, CALLER]).await.status, 200);
    assert_eq!(ask(&peers, &replica, "/healthz", &[MARK, SHOWN, CALLER]).await.status, 200);
    let told = ask(&clients, &replica, "/v1/replicas", &[bearer]).await.ok(200);
    assert_eq!(told["replicas"][0]["endpoint"], replica.endpoint, "the others are told of their own");
    assert!(replica.endpoint.ends_with(&replica.peers_address.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_port_opens_to_its_own_on_the_embedded_pair() {
    each_port_opens_to_its_own(Fleet::new().apart()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_port_opens_to_its_own_on_the_cloud_pair() {
    each_port_opens_to_its_own(Fleet::cloud().await.apart()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forwarded_goes_by_the_replicas_own() {
    for fleet in [Fleet::new().apart(), Fleet::new().over_tls().apart()] {
        let (owner, other) = (fleet.start().await, fleet.start().await);
        owner.append(TENANT, "a").await;
        other.append(TENANT, "b").await;
        assert_eq!(owner.kinds(TENANT).await, ["a", "b"]);
        assert_eq!(other.metric("leasehold_forwarded_requests_total{outcome=\"answered\"}").await, 1);
        let handoff = format!("{}/handoff", path_of(TENANT));
        let status = owner.post_json(&handoff, &json!({ "to": "dev-2" })).await.ok(200);
        assert_eq!(status["endpoint"], other.endpoint);
        // One that goes still answers on both until nobody needs it.
        other.post("/v1/drain").await.ok(200);
        assert_eq!(other.kinds(TENANT).await, ["a", "b"]);
        assert_eq!(owner.metric("leasehold_peers_refused_total").await, 0);
    }
}
