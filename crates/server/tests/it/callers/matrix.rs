//! Every route of the document, by every kind of caller: what is let through is what the document says, and what is refused asks no store.

use std::sync::Arc;

use leasehold_blob::BlobStore;
use leasehold_lease::LeaseStore;
use leasehold_server::{Edges, Stores};
use leasehold_testkit::{CloudPair, FaultyBlobs, FaultyLeases, LeaseOp, Pair as _};
use leasehold_types::{ApiToken, Entropy, Scope};
use reqwest::Method;
use serde_json::Value;

use super::known::{asking, known};
use crate::served::{Answered, Served, config_in, path_of};

/// One route of the document: what it asks of its caller, if it asks anything.
struct Route {
    method: Method,
    path: String,
    scopes: Option<Vec<Scope>>,
}

impl Route {
    fn is_of_fleet(&self) -> bool {
        !self.path.contains("{org}")
    }

    fn path_for(&self, org: &str, tenant: &str) -> String {
        self.path.replace("{org}", org).replace("{tenant}", tenant)
    }
}

/// Those of services, as `security` tells them.
fn routes() -> Vec<Route> {
    let document: Value = serde_json::from_str(&leasehold_server::openapi_json()).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let security = operation["security"].as_array().expect("each operation says whom it asks");
            let of_services = security.iter().find_map(|way| way["apiToken"].as_array());
            if of_services.is_none() && !security.is_empty() {
                continue;
            }
            let scopes = of_services
                .map(|scopes| scopes.iter().map(|scope| scope.as_str().unwrap().parse().unwrap()).collect());
            routes.push(Route { method: method.to_uppercase().parse().unwrap(), path: path.clone(), scopes });
        }
    }
    assert!(routes.len() > 20, "{}", routes.len());
    routes
}

async fn send(served: &Served, route: &Route, path: &str, token: Option<&str>) -> Answered {
    let request = served.request(route.method.clone(), path);
    served
        .send(match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        })
        .await
}

/// A replica whose stores count who asks them.
struct Watched {
    served: Served,
    stores: Stores,
    leases: FaultyLeases,
    blobs: FaultyBlobs,
    _dir: tempfile::TempDir,
}

impl Watched {
    async fn on(dir: tempfile::TempDir, stores: Stores) -> Self {
        let (blobs, leases) = (FaultyBlobs::new(stores.blobs), FaultyLeases::new(stores.leases));
        let stores = Stores {
            blobs: Arc::new(blobs.clone()) as Arc<dyn BlobStore>,
            leases: Arc::new(leases.clone()) as Arc<dyn LeaseStore>,
            tokens: stores.tokens,
        };
        let mut config = config_in(dir.path());
        asking(&mut config);
        let served = Served::start_on(config, stores.clone()).await;
        Self { served, stores, leases, blobs, _dir: dir }
    }

    async fn embedded() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stores = Stores::embedded(&config_in(dir.path()), &Edges::system()).unwrap();
        Self::on(dir, stores).await
    }

    async fn cloud() -> Self {
        let pair = CloudPair::real_time().await;
        let stores = Stores { leases: pair.leases(), tokens: pair.tokens(), blobs: pair.blobs() };
        Self::on(tempfile::tempdir().unwrap(), stores).await
    }

    /// What a look for a tenant would ask.
    fn looks(&self) -> [u64; 5] {
        let of = |op| self.leases.calls(op);
        [
            of(LeaseOp::Read),
            of(LeaseOp::Acquire),
            of(LeaseOp::List),
            of(LeaseOp::Replicas),
            self.blobs.calls().len() as u64,
        ]
    }
}

async fn each_caller_reaches_what_the_document_says(watched: Watched) {
    let Watched { served, stores, .. } = &watched;
    let tokens = stores.tokens.as_ref();
    let mut callers: Vec<(String, Vec<Scope>, bool, bool, ApiToken)> = Vec::new();
    for scope in Scope::ALL {
        let token = known(tokens, &format!("acme-{scope}"), "acme", scope.as_str()).await;
        callers.push((format!("{scope} in acme"), vec![scope], true, false, token));
        let token = known(tokens, &format!("all-{scope}"), "*", scope.as_str()).await;
        callers.push((format!("{scope} everywhere"), vec![scope], true, true, token));
    }
    let all = "read append sql operate forget admin";
    let acme = known(tokens, "acme-all", "acme other-one", all).await;
    callers.push(("everything in acme".to_owned(), Scope::ALL.to_vec(), true, false, acme));
    let other = known(tokens, "other", "other", all).await;
    callers.push(("everything elsewhere".to_owned(), Scope::ALL.to_vec(), false, false, other));
    let newest = callers.last().unwrap().4.reveal().to_owned();
    crate::served::eventually("the tokens are known", async || {
        let request = served.request(Method::GET, "/v1/orgs/other/tenants");
        served.send(request.header("authorization", format!("Bearer {newest}"))).await.status == 200
    })
    .await;

    for route in routes() {
        let path = route.path_for("acme", "nobody");
        let shown = format!("{} {path}", route.method);
        let Some(scopes) = &route.scopes else {
            assert_eq!(send(served, &route, &path, None).await.status, 200, "{shown}");
            continue;
        };
        let nobody = send(served, &route, &path, None).await;
        nobody.problem(401, "unauthenticated");
        assert_eq!(nobody.headers["www-authenticate"], "Bearer realm=\"leasehold\"", "{shown}");
        let unknown = ApiToken::mint(&Entropy::seeded(1));
        for wrong in [unknown.reveal(), "lh_", "a.b.c", "x"] {
            let refused = send(served, &route, &path, Some(wrong)).await;
            refused.problem(401, "unauthenticated");
            assert!(
                refused.headers["www-authenticate"].to_str().unwrap().contains("invalid_token"),
                "{shown}"
            );
        }
        for (name, has, reaches_acme, reaches_all, token) in &callers {
            let reaches = if route.is_of_fleet() { *reaches_all } else { *reaches_acme };
            let may = reaches && scopes.iter().all(|scope| has.contains(scope));
            if may && route.path == "/v1/drain" {
                continue;
            }
            let answered = send(served, &route, &path, Some(token.reveal())).await;
            let is_refused = matches!(answered.status.as_u16(), 401 | 403);
            assert_eq!(!is_refused, may, "{shown} by {name}: {}", answered.status);
            if is_refused {
                answered.problem(403, "forbidden");
            }
        }
    }
    assert!(served_refusals(served, &callers).await > 100);
}

async fn served_refusals(served: &Served, callers: &[(String, Vec<Scope>, bool, bool, ApiToken)]) -> u64 {
    let (.., token) = callers.iter().find(|(name, ..)| name == "operate everywhere").unwrap();
    let request = served.request(Method::GET, "/metrics");
    let text = served.send(request.header("authorization", format!("Bearer {}", token.reveal()))).await;
    let text = String::from_utf8(text.body).unwrap();
    let name = "leasehold_callers_refused_total{code=\"forbidden\"} ";
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

async fn a_refusal_tells_nothing_of_what_is_there(watched: Watched) {
    let Watched { served, stores, .. } = &watched;
    let owner = known(stores.tokens.as_ref(), "crm", "acme", "read append").await;
    let other = known(stores.tokens.as_ref(), "other", "other", "read append sql operate forget admin").await;
    let events = format!("{}/events", path_of("acme/there"));
    crate::served::eventually("the tokens are known", async || {
        let request = served
            .request(Method::POST, &events)
            .header("authorization", format!("Bearer {}", owner.reveal()));
        served.send(request.json(&serde_json::json!({ "kind": "a", "actor": "ada" }))).await.status == 201
    })
    .await;
    crate::served::eventually("the other one is known", async || {
        let request = served.request(Method::GET, "/v1/orgs/other/tenants");
        served.send(request.header("authorization", format!("Bearer {}", other.reveal()))).await.status == 200
    })
    .await;

    for route in routes().iter().filter(|route| route.path.contains("{tenant}")) {
        let before = watched.looks();
        // A token of another organization, one that lacks the scope, none at all.
        let mut tokens = vec![Some(other.reveal()), None];
        let scopes = route.scopes.as_ref().unwrap();
        if scopes.iter().any(|scope| !matches!(scope, Scope::Read | Scope::Append)) {
            tokens.push(Some(owner.reveal()));
        }
        for token in tokens {
            let [there, nowhere] = [
                send(served, route, &route.path_for("acme", "there"), token).await,
                send(served, route, &route.path_for("acme", "nobody"), token).await,
            ];
            assert!(matches!(there.status.as_u16(), 401 | 403), "{}: {}", route.path, there.status);
            assert_eq!((there.status, &there.body), (nowhere.status, &nowhere.body), "{}", route.path);
            let names = |answered: &Answered| {
                let headers = answered.headers.iter().filter(|(name, _)| *name != "date");
                headers.map(|(name, value)| format!("{name}: {value:?}")).collect::<Vec<_>>()
            };
            assert_eq!(names(&there), names(&nowhere), "{}", route.path);
        }
        assert_eq!(watched.looks(), before, "no store was asked: {} {}", route.method, route.path);
    }
}

macro_rules! over_each_pair {
    ($($test:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(super::Watched::embedded().await).await;
            })+
        }

        mod cloud {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(super::Watched::cloud().await).await;
            })+
        }
    };
}

over_each_pair!(each_caller_reaches_what_the_document_says, a_refusal_tells_nothing_of_what_is_there);
