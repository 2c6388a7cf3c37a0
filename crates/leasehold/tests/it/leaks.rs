//! What leaks: nothing. Two replicas that log all they can, asked everything with secrets in it, and then looked through.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use leasehold_testkit::{PATIENCE, eventually};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    data::client,
    ground::{Ground, address, over_each_pair},
    process::Replica,
};

/// What callers send. Long and odd enough that nothing else is it.
const PAYLOAD: &str = "zq-payload-5d41402abc";
const LATE_PAYLOAD: &str = "zq-late-7b52009b64";
const KIND: &str = "zq-kind-1f3870be27";
const ACTOR: &str = "zq-actor-9bf31c7ff0";
const ABOUT: &str = "zq-subject-c51ce410c1";
const RUN: &str = "zq-run-e4da3b7fbb";
const KEY: &str = "zq-idempotency-8f14e45fce";
const EVENT_KEY: &str = "zq-eventkey-45c48cce2e";
const TABLE: &str = "zq_table_d3d9446802";
const LITERAL: &str = "zq-literal-6512bd43d9";
const PARAM: &str = "zq-param-c20ad4d76f";
const BROKEN: &str = "zq_broken_aab3238922";
const ISSUER: &str = "https://zq-issuer-70efdf2ec9.example";
const PERSON: &str = "zq-person-6f4922f455";
const BEARER: &str = "zq-bearer-1679091c5a";
const FILTER: &str = "zq-filter-9a1158154d";
const NO_ID: &str = "ZQ-No-Id-02e74f10e0";
const ODD_HEADER: &str = "zq-header-33e75ff09d";
const OF_CALLERS: [&str; 18] = [
    PAYLOAD,
    LATE_PAYLOAD,
    KIND,
    ACTOR,
    ABOUT,
    RUN,
    KEY,
    EVENT_KEY,
    TABLE,
    LITERAL,
    PARAM,
    BROKEN,
    ISSUER,
    PERSON,
    BEARER,
    FILTER,
    NO_ID,
    ODD_HEADER,
];
/// What the fleet knows.
const PEERS: &str = "zq-peers-8277e0910d750195b448797616e091ad";

/// The forms in which a secret may lie in a text.
fn forms(secret: &str) -> BTreeSet<String> {
    let bytes = secret.as_bytes();
    let percent = |upper: bool| {
        let escape = |byte: &u8| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        bytes.iter().map(escape).collect::<String>()
    };
    let lightly: String = bytes
        .iter()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => {
                char::from(*byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let listed = bytes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let hex = hex::encode(bytes);
    let mut forms = BTreeSet::from([
        secret.to_owned(),
        hex.to_uppercase(),
        hex,
        percent(true),
        percent(false),
        lightly,
        listed,
    ]);
    // Wherever in a longer text it begins; what its neighbours have a part in is left out.
    for before in 0..3 {
        let mut padded = vec![0; before];
        padded.extend(bytes);
        let text = STANDARD.encode(&padded);
        let inner = text.get((before * 4).div_ceil(3)..text.len() - 4).unwrap_or_default().to_owned();
        forms.insert(inner.replace('+', "-").replace('/', "_"));
        forms.insert(inner);
    }
    forms
}

#[track_caller]
fn assert_untold(place: &str, text: &str, secrets: &[&str]) {
    for secret in secrets {
        for form in forms(secret) {
            let Some(at) = text.find(&form) else { continue };
            let from = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let line: String = text[from..].lines().next().unwrap_or_default().chars().take(2_000).collect();
            panic!("{place} tells {secret} as {form}: {line}");
        }
    }
}

/// Somebody who asks everything, and keeps what was refused.
struct Asker {
    routes: BTreeSet<(String, String)>,
    refusals: String,
}

impl Asker {
    /// Sends a request of a route of the document.
    async fn ask(
        &mut self,
        replica: &Replica,
        method: Method,
        route: &str,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> (u16, Vec<u8>) {
        let (path, query) = route.split_once('?').unwrap_or((route, ""));
        self.routes.insert((method.as_str().to_lowercase(), template(path)));
        let url = format!("{}{path}{}{query}", replica.endpoint, if query.is_empty() { "" } else { "?" });
        let request = client()
            .request(method, url)
            .header("authorization", format!("Bearer {BEARER}"))
            .header("x-odd", ODD_HEADER)
            .header("cookie", format!("session={ODD_HEADER}"));
        let response = with(request).send().await.unwrap();
        let status = response.status().as_u16();
        let body = response.bytes().await.unwrap().to_vec();
        if status >= 400 {
            self.refusals.push_str(&String::from_utf8_lossy(&body));
        }
        (status, body)
    }
}

/// The document's name of a path.
fn template(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.get(2) == Some(&"orgs") {
        parts[3] = "{org}";
        if parts.len() > 5 {
            parts[5] = "{tenant}";
        }
    }
    parts.join("/")
}

fn tenant(rest: &str) -> String {
    format!("/v1/orgs/acme/tenants/one{rest}")
}

async fn nothing_that_was_sent_or_is_kept_is_told(ground: Ground) {
    let secret_file = ground.dir.path().join("peers");
    std::fs::write(&secret_file, format!("{PEERS}\n")).unwrap();
    let environment =
        [("LEASEHOLD_LOG__FILTER", "trace"), ("LEASEHOLD_PEERS__SECRET_FILE", secret_file.to_str().unwrap())];
    let a = ground.start_in("a", &environment).await;
    let b = ground.start_in("b", &environment).await;
    for replica in [&a, &b] {
        eventually(PATIENCE, "it is ready", async || replica.is_ready().await).await;
    }
    let mut asker = Asker { routes: BTreeSet::new(), refusals: String::new() };
    ask_everything(&mut asker, &a, &b).await;

    let document: Value = serde_json::from_str(&leasehold_server::openapi_json()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            // Nobody is a person where nobody is asked: what they show and send is refused, and told to nobody.
            if path.starts_with("/v1/self") {
                let method: Method = method.to_uppercase().parse().unwrap();
                let sent = |request: RequestBuilder| request.json(&json!({ "said": PAYLOAD }));
                asker.ask(&a, method, path, sent).await;
            }
            assert!(asker.routes.contains(&(method.clone(), path.clone())), "{method} {path} was not asked");
        }
    }
    let infrastructure = infrastructure(&ground);
    let of_fleet: Vec<&str> = infrastructure.iter().map(String::as_str).collect();
    let mut all = OF_CALLERS.to_vec();
    all.extend(&of_fleet);
    assert_untold("a refusal", &asker.refusals, &of_fleet);
    for replica in [&a, &b] {
        let metrics =
            client().get(format!("{}/metrics", replica.endpoint)).send().await.unwrap().text().await.unwrap();
        assert!(metrics.contains("leasehold_http_requests_total"), "{metrics}");
        assert_untold("the metrics", &metrics, &all);
        assert!(!metrics.contains("acme"), "{metrics}");
    }
    for replica in [a, b] {
        let ended = replica.stop().await;
        assert!(
            ended.err.contains("TRACE") || ended.err.contains("DEBUG"),
            "it logged little: {}",
            ended.err
        );
        assert!(ended.err.contains("answered"), "its own lines are told: {}", ended.err);
        assert_untold("the log", &ended.err, &all);
        assert_untold("the standard output", &ended.out, &all);
    }
}

/// What the configuration names and nobody else is to know.
fn infrastructure(ground: &Ground) -> Vec<String> {
    let mut secrets = vec![PEERS.to_owned()];
    if ground.config.is_some() {
        let azurite = address("LEASEHOLD_TEST_AZURITE");
        let key = azurite.split(';').find_map(|part| part.strip_prefix("AccountKey=")).unwrap();
        secrets.push(key.to_owned());
        let url = address("LEASEHOLD_TEST_POSTGRES");
        let login = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map(|(login, _)| login);
        // One that is a word of everyday is no secret, and stands in logs for other reasons.
        let password = login.and_then(|login| login.split_once(':')).map(|(_, password)| password.to_owned());
        secrets.extend(password.filter(|password| password.len() >= 12));
        secrets.push("5e".repeat(32));
    }
    secrets
}

async fn ask_everything(asker: &mut Asker, a: &Replica, b: &Replica) {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    let none = |request: RequestBuilder| request;
    let event = |kind: &str, payload: &str| json!({ "kind": kind, "actor": ACTOR, "subject_id": ABOUT, "run_id": RUN, "payload": { "said": payload } });
    asker.ask(a, put.clone(), &tenant(""), none).await;
    for replica in [a, b] {
        let first = event(KIND, PAYLOAD);
        let keyed = |request: RequestBuilder| request.json(&first).header("idempotency-key", KEY);
        asker.ask(replica, post.clone(), &tenant("/events"), keyed).await;
        let mut named = event(KIND, LATE_PAYLOAD);
        named["idem_key"] = json!(EVENT_KEY);
        asker.ask(replica, post.clone(), &tenant("/events"), |request| request.json(&json!([named]))).await;
        // Known keys with another content, bodies that are none, and headers that are none.
        let other = event(KIND, LATE_PAYLOAD);
        asker
            .ask(replica, post.clone(), &tenant("/events"), |request| {
                request.json(&other).header("idempotency-key", KEY)
            })
            .await;
        let broken = format!("{{\"kind\":\"{KIND}\",\"{BROKEN}\":");
        let typed = |request: RequestBuilder| request.header("content-type", "application/json").body(broken);
        asker.ask(replica, post.clone(), &tenant("/events"), typed).await;
        let late = |request: RequestBuilder| request.header("leasehold-timeout", BROKEN);
        asker.ask(replica, get.clone(), &tenant("/events"), late).await;
        let filtered = tenant(&format!("/events?kind={FILTER}&subject={FILTER}&limit=5"));
        asker.ask(replica, get.clone(), &filtered, none).await;
        asker.ask(replica, get.clone(), &tenant(&format!("/events?after={FILTER}")), none).await;
        asker.ask(replica, get.clone(), &tenant(&format!("/events?{FILTER}=1")), none).await;
        let streamed = client()
            .get(format!("{}{}", replica.endpoint, tenant("/events")))
            .header("accept", "text/event-stream");
        let mut stream = streamed.send().await.unwrap();
        stream.chunk().await.unwrap();
        drop(stream);
        let create = format!("create table if not exists {TABLE} (x)");
        let insert = format!("insert into {TABLE} values ('{LITERAL}'), (?)");
        let statements = json!({ "statements": [{ "sql": create }, { "sql": insert, "params": [PARAM] }] });
        asker
            .ask(replica, post.clone(), &tenant("/execute"), |request| {
                request.json(&statements).header("idempotency-key", KEY)
            })
            .await;
        for sql in [
            format!("select * from {TABLE} where x = ?"),
            format!("select {BROKEN} from {TABLE} where x = ?"),
            format!("select * from {BROKEN} where x = ?"),
            format!("selec '{LITERAL}', ?"),
            format!("attach '{LITERAL}' as x"),
            format!("select json('{LITERAL}'), ?"),
        ] {
            let body = json!({ "sql": sql, "params": [PARAM] });
            asker.ask(replica, post.clone(), &tenant("/query"), |request| request.json(&body)).await;
            let body = json!({ "statements": [{ "sql": sql, "params": [PARAM] }] });
            asker.ask(replica, post.clone(), &tenant("/execute"), |request| request.json(&body)).await;
        }
        let (status, file) = asker.ask(replica, get.clone(), &tenant("/export"), none).await;
        assert_eq!(status, 200);
        let copy =
            format!("/v1/orgs/acme/tenants/copy-{}/import", if std::ptr::eq(replica, a) { "a" } else { "b" });
        let sqlite =
            |request: RequestBuilder| request.header("content-type", "application/vnd.sqlite3").body(file);
        assert_eq!(asker.ask(replica, put.clone(), &copy, sqlite).await.0, 201);
        let no_file = |request: RequestBuilder| {
            request.header("content-type", "application/vnd.sqlite3").body(PAYLOAD.repeat(100))
        };
        asker.ask(replica, put.clone(), "/v1/orgs/acme/tenants/none/import", no_file).await;
        asker.ask(replica, get.clone(), &tenant(""), none).await;
        asker.ask(replica, get.clone(), "/v1/orgs/acme/tenants", none).await;
        asker.ask(replica, get.clone(), &format!("/v1/orgs/acme/tenants?after={NO_ID}"), none).await;
        asker.ask(replica, get.clone(), &format!("/v1/orgs/acme/tenants/{NO_ID}"), none).await;
        asker.ask(replica, get.clone(), &format!("/v1/orgs/{NO_ID}/tenants"), none).await;
        asker.ask(replica, get.clone(), &format!("/{NO_ID}"), none).await;
        let person = json!({ "issuer": ISSUER, "subject": PERSON });
        let resolve = "/v1/orgs/acme/tenants:resolve";
        assert_eq!(asker.ask(replica, post.clone(), resolve, |request| request.json(&person)).await.0, 200);
        for forged in ["leasehold-peer-secret", "leasehold-forwarded-by"] {
            asker.ask(replica, get.clone(), &tenant(""), |request| request.header(forged, ODD_HEADER)).await;
        }
        for verb in ["/snapshot", "/pause", "/resume", "/handoff", "/abandon"] {
            asker.ask(replica, post.clone(), &tenant(verb), none).await;
        }
        for path in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/replicas"] {
            assert_eq!(asker.ask(replica, get.clone(), path, none).await.0, 200, "{path}");
        }
    }
    asker.ask(b, delete.clone(), &tenant("?dry_run=true"), none).await;
    asker.ask(b, delete, &tenant(""), none).await;
    asker.ask(a, post, "/v1/drain", none).await;
}

over_each_pair!(nothing_that_was_sent_or_is_kept_is_told);
