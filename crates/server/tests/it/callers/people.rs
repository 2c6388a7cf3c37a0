//! People by their JWTs: at their own tenant, wherever it is held, and nowhere else.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Json, Router, routing::get};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use leasehold_server::{Config, IssuerSettings};
use leasehold_types::{Clock as _, SystemClock};
use reqwest::Method;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::known::{asking, known};
use crate::{
    forwarding::fleet::Fleet,
    served::{Answered, Served, eventually, path_of},
};

const ISSUER: &str = "https://id.example/";

/// An issuer that answers with its keys.
struct Issuer {
    key: Mutex<(String, Ed25519KeyPair)>,
    fetches: AtomicUsize,
    url: String,
}

impl Issuer {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let issuer =
            Arc::new(Self { key: Mutex::new(Self::fresh("one")), fetches: AtomicUsize::new(0), url });
        let answering = Arc::clone(&issuer);
        let keys = move || {
            let answering = Arc::clone(&answering);
            async move {
                answering.fetches.fetch_add(1, Ordering::Relaxed);
                Json(answering.set())
            }
        };
        tokio::spawn(
            async move { axum::serve(listener, Router::new().route("/keys", get(keys))).await.unwrap() },
        );
        issuer
    }

    fn fresh(id: &str) -> (String, Ed25519KeyPair) {
        let made = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
        (id.to_owned(), Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
    }

    fn set(&self) -> Value {
        let (id, key) = &*self.key.lock().unwrap();
        json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "kid": id, "x": URL_SAFE_NO_PAD.encode(key.public_key().as_ref()),
        }] })
    }

    fn token(&self, subject: &str) -> String {
        let (id, key) = &*self.key.lock().unwrap();
        let now = SystemClock.wall().as_millis() / 1_000;
        let header = json!({ "alg": "EdDSA", "kid": id });
        let claims = json!({ "iss": ISSUER, "aud": "leasehold", "sub": subject, "exp": now + 600 });
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())))
    }

    fn settings(&self) -> IssuerSettings {
        IssuerSettings {
            issuer: ISSUER.to_owned(),
            audience: "leasehold".to_owned(),
            keys_url: Some(self.url.clone()),
            organization: Some("acme".parse().unwrap()),
            ..IssuerSettings::default()
        }
    }

    fn listed(&self) -> impl FnOnce(&mut Config) + use<> {
        let settings = self.settings();
        move |config| {
            asking(config);
            config.auth.issuers = vec![settings];
        }
    }
}

async fn by(served: &Served, method: Method, path: &str, token: &str) -> Answered {
    served.send(served.request(method, path).header("authorization", format!("Bearer {token}"))).await
}

async fn append(served: &Served, token: &str, kind: &str) -> Answered {
    let request =
        served.request(Method::POST, "/v1/self/events").header("authorization", format!("Bearer {token}"));
    served.send(request.json(&json!({ "kind": kind, "actor": "ada" }))).await
}

async fn a_person_has_a_tenant_wherever_it_is_held(fleet: Fleet) {
    let issuer = Issuer::start().await;
    let (one, two) = (fleet.start_with(issuer.listed()).await, fleet.start_with(issuer.listed()).await);
    let (ada, bob) = (issuer.token("ada"), issuer.token("bob"));
    append(&one, &ada, "a").await.ok(201);
    append(&two, &ada, "b").await.ok(201);
    append(&two, &bob, "c").await.ok(201);
    for replica in [&one, &two] {
        let page = by(replica, Method::GET, "/v1/self/events?limit=10", &ada).await.ok(200);
        let kinds: Vec<&str> =
            page["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["a", "b"]);
    }
    // It is the tenant that a service derives.
    let crm = known(fleet.stores.tokens.as_ref(), "crm", "acme", "read").await;
    eventually("the service is known", async || {
        by(&one, Method::GET, "/v1/orgs/acme/tenants", crm.reveal()).await.status == 200
    })
    .await;
    let request = one.request(Method::POST, "/v1/orgs/acme/tenants:resolve");
    let request = request.header("authorization", format!("Bearer {}", crm.reveal()));
    let resolved = one.send(request.json(&json!({ "issuer": ISSUER, "subject": "ada" }))).await.ok(200);
    let status = by(&two, Method::GET, "/v1/self", &ada).await.ok(200);
    assert_eq!(status["key"], format!("acme/{}", resolved["tenant"].as_str().unwrap()));
    // And is forgotten by whose it is.
    by(&two, Method::DELETE, "/v1/self", &ada).await.ok(200);
    by(&one, Method::GET, "/v1/self/events", &ada).await.problem(410, "tenant_forgotten");
    by(&one, Method::GET, "/v1/self/events", &bob).await.ok(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_a_tenant_on_the_embedded_pair() {
    a_person_has_a_tenant_wherever_it_is_held(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_a_tenant_on_the_cloud_pair() {
    a_person_has_a_tenant_wherever_it_is_held(Fleet::cloud().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_reaches_their_own_tenant_and_nothing_else() {
    let issuer = Issuer::start().await;
    let served = Served::alone_with(issuer.listed()).await;
    let ada = issuer.token("ada");
    append(&served, &ada, "a").await.ok(201);
    let own = by(&served, Method::GET, "/v1/self", &ada).await.ok(200)["key"].as_str().unwrap().to_owned();
    let document: Value = serde_json::from_str(&leasehold_server::openapi_json()).unwrap();
    let (mut of_self, mut others) = (0, 0);
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let security = operation["security"].as_array().unwrap();
            if security.is_empty() {
                continue;
            }
            let method: Method = method.to_uppercase().parse().unwrap();
            if path.starts_with("/v1/self") {
                of_self += 1;
                let nobody = served.send(served.request(method.clone(), path)).await;
                nobody.problem(401, "unauthenticated");
                if method != Method::DELETE {
                    let answered = by(&served, method, path, &ada).await;
                    assert!(
                        !matches!(answered.status.as_u16(), 401 | 403 | 404),
                        "{path}: {}",
                        answered.status
                    );
                }
            } else {
                others += 1;
                // Their own tenant, by its name, neither.
                let named = path
                    .replace("{org}/tenants/{tenant}", &own.replace('/', "/tenants/"))
                    .replace("{org}", "acme");
                by(&served, method, &named, &ada).await.problem(403, "forbidden");
            }
        }
    }
    assert!(of_self >= 9 && others >= 15, "{of_self} {others}");
    for verb in ["snapshot", "handoff", "abandon", "pause", "resume"] {
        by(&served, Method::POST, &format!("/v1/self/{verb}"), &ada).await.problem(403, "forbidden");
    }
    for path in ["/v1/self/nothing", "/v1/self/../x/events"] {
        by(&served, Method::GET, path, &ada).await;
    }
    by(&served, Method::GET, "/v1/self/nothing", &ada).await.problem(404, "not_found");
    by(&served, Method::GET, "/v1/self", "a.b.c").await.problem(401, "unauthenticated");
    let anybody = Served::alone().await;
    by(&anybody, Method::GET, "/v1/self", &ada).await.problem(401, "unauthenticated");
    assert!(path_of(&own).starts_with("/v1/orgs/acme/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_not_there_is_fetched_once_and_no_more() {
    let issuer = Issuer::start().await;
    let served = Served::alone_with(issuer.listed()).await;
    let old = issuer.token("ada");
    append(&served, &old, "a").await.ok(201);
    *issuer.key.lock().unwrap() = Issuer::fresh("two");
    let new = issuer.token("ada");
    let before = issuer.fetches.load(Ordering::Relaxed);
    for _ in 0..50 {
        append(&served, &new, "b").await;
    }
    let fetched = issuer.fetches.load(Ordering::Relaxed) - before;
    assert!(fetched <= 1, "{fetched} fetches for fifty tokens of a key that is not there");
}
