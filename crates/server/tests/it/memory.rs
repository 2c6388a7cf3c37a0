//! Shedding before memory: what is too much together is refused before it is read, and whoever needs little is answered.

use leasehold_server::Config;
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    forwarding::fleet::Fleet,
    served::{Served, config_in, eventually, path_of, soon},
};

const TENANT: &str = "acme/user-1";
const MIB: u64 = 1024 * 1024;
/// What all requests may hold here, of which an eighth is for those without a body.
const MEMORY: u64 = 8 * MIB;
/// A body that counts four times: as it may be sent on, as it came, as it was read, and as it is tried.
const BODY: usize = 290_000;
/// So many of them fit.
const FIT: usize = 6;

fn narrow(config: &mut Config) {
    config.limits.body_bytes_max = 1024 * 1024;
    config.limits.memory_bytes_max = Some(MEMORY);
    config.limits.body_time_max = std::time::Duration::from_secs(120);
}

async fn held(served: &Served) -> u64 {
    served.metric("leasehold_request_memory_bytes").await
}

/// An append of one event whose body has come in half.
struct Half {
    stream: TcpStream,
    rest: Vec<u8>,
}

impl Half {
    async fn send(served: &Served, kind: &str) -> Self {
        let payload = "x".repeat(200_000);
        let mut body = json!({ "kind": kind, "actor": "ada", "payload": payload }).to_string().into_bytes();
        body.resize(BODY, b' ');
        let mut stream = TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap();
        let head = format!(
            "POST {}/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {BODY}\r\nconnection: close\r\n\r\n",
            path_of(TENANT)
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let rest = body.split_off(BODY / 2);
        stream.write_all(&body).await.unwrap();
        Self { stream, rest }
    }

    /// The status once the rest of it has come.
    async fn finish(mut self) -> String {
        self.stream.write_all(&self.rest).await.unwrap();
        let mut answer = String::new();
        soon("an answer", self.stream.read_to_string(&mut answer)).await.unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    }
}

async fn a_burst_is_shed_before_it_is_read(fleet: Fleet) {
    let served = fleet.start_with(narrow).await;
    let sql = async |route: &str, body: serde_json::Value| {
        served.post_json(&format!("{}/{route}", path_of(TENANT)), &body).await
    };
    let table = "create table t as with recursive n(x) as (select 1 union all select x + 1 from n where x < 100) \
        select x, hex(randomblob(2500)) as y from n";
    sql("execute", json!({ "statements": [{ "sql": table }] })).await.ok(200);
    eventually("nothing is held", async || held(&served).await == 0).await;

    let mut halves = Vec::new();
    for number in 0..FIT {
        halves.push(Half::send(&served, &format!("burst-{number}")).await);
    }
    let burst = (FIT * 4 * BODY) as u64;
    eventually("all are reserved", async || held(&served).await > burst).await;
    assert_eq!(served.metric("leasehold_request_memory_shed_total").await, 0);

    // One more is refused by its head alone.
    let events = format!("{}/events", path_of(TENANT));
    let mut one_more = TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST {events} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {BODY}\r\nconnection: close\r\n\r\n"
    );
    one_more.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon("a refusal", one_more.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.contains("retry-after: "), "{answer}");
    assert!(answer.contains("\"overloaded\"") && answer.contains("\"executed\":\"no\""), "{answer}");
    // A result that does not fit, and one of what writes: that is taken back.
    sql("query", json!({ "sql": "select y from t" })).await.problem(429, "overloaded");
    let update = json!({ "statements": [{ "sql": "update t set x = 0 returning y" }] });
    let refused = sql("execute", update.clone()).await.problem(429, "overloaded");
    assert_eq!(refused["executed"], "no");
    assert!(served.metric("leasehold_request_memory_shed_total").await >= 3);

    // Whoever needs little is answered, and may write.
    served.get(&path_of(TENANT)).await.ok(200);
    assert_eq!(
        sql("query", json!({ "sql": "select count(*) from t where x > 0" })).await.ok(200)["rows"],
        json!([[100]])
    );
    served.append(TENANT, "small").await;

    for half in halves {
        assert_eq!(half.finish().await, "201");
    }
    eventually("all is given back", async || held(&served).await == 0).await;
    sql("execute", update).await.ok(200);
    assert_eq!(
        sql("query", json!({ "sql": "select y from t" })).await.ok(200)["rows"].as_array().unwrap().len(),
        100
    );
    assert_eq!(served.kinds(TENANT).await.len(), FIT + 1);
    eventually("all is given back", async || held(&served).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_shed_before_it_is_read_on_the_embedded_pair() {
    a_burst_is_shed_before_it_is_read(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_shed_before_it_is_read_on_the_cloud_pair() {
    a_burst_is_shed_before_it_is_read(Fleet::cloud().await).await;
}

/// A body that does not say how long it is, and an answer that nobody takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_a_length_counts_as_it_comes_and_an_answer_until_it_has_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    narrow(&mut config);
    config.limits.memory_bytes_max = Some(64 * MIB);
    let served = Served::start(config).await;
    let piece = "x".repeat(100_000);
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(1);
    let pieces =
        futures::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let request = served
        .request(Method::POST, &format!("{}/events", path_of(TENANT)))
        .header("content-type", "application/json")
        .body(reqwest::Body::wrap_stream(pieces));
    let append = tokio::spawn(request.send());
    let begin = "{\"kind\":\"a\",\"actor\":\"ada\",\"payload\":\"".to_owned();
    sender.send(Ok(begin)).await.unwrap();
    sender.send(Ok(piece.clone())).await.unwrap();
    eventually("it is counted", async || (300_000..400_000).contains(&held(&served).await)).await;
    sender.send(Ok(piece)).await.unwrap();
    eventually("and what comes", async || (600_000..700_000).contains(&held(&served).await)).await;
    sender.send(Ok("\"}".to_owned())).await.unwrap();
    drop(sender);
    assert_eq!(soon("the answer", append).await.unwrap().unwrap().status(), 201);
    eventually("it is given back", async || held(&served).await == 0).await;

    // More than stays in the system's buffers between here and a client that does not read.
    let large = json!({ "sql": "with recursive n(x) as (select 1 union all select x + 1 from n where x < 160) select hex(zeroblob(50000)) from n" });
    let body = large.to_string();
    let idle = tokio::net::TcpSocket::new_v4().unwrap();
    idle.set_recv_buffer_size(16 * 1024).unwrap();
    let mut idle = idle.connect(served.url.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap();
    let head = format!(
        "POST {}/query HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        path_of(TENANT),
        body.len()
    );
    idle.write_all(head.as_bytes()).await.unwrap();
    eventually("the answer is held", async || held(&served).await > 32_000_000).await;
    served.post_json(&format!("{}/query", path_of(TENANT)), &large).await.problem(429, "overloaded");
    drop(idle);
    eventually("it is given back", async || held(&served).await == 0).await;
    served.post_json(&format!("{}/query", path_of(TENANT)), &large).await.ok(200);
}
