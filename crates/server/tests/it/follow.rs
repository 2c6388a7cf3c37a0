//! Event streams.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use reqwest::{Method, Response, header};

use crate::served::{Served, path_of, soon};

const TENANT: &str = "acme/user-1";

/// A stream as a client reads it: message by message.
pub(crate) struct Followed {
    pieces: std::pin::Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
}

impl Followed {
    pub(crate) async fn open(served: &Served, query: &str, last_id: Option<&str>) -> Self {
        let response = begin(served, query, last_id).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Self { pieces: Box::pin(response.bytes_stream()), text: String::new() }
    }

    /// The next message's lines; `None` once the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let lines = message.lines().map(str::to_owned).collect();
                self.text = String::from(rest);
                return Some(lines);
            }
            let piece = soon("a message", self.pieces.next()).await?.unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The next event's id and kind.
    pub(crate) async fn event(&mut self) -> (String, String) {
        let lines = self.next().await.expect("the stream goes on");
        let field =
            |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        let event: serde_json::Value = serde_json::from_str(&field("data:")).unwrap();
        assert_eq!(event["position"], field("id:"));
        (field("id:"), event["kind"].as_str().unwrap().to_owned())
    }
}

async fn begin(served: &Served, query: &str, last_id: Option<&str>) -> Response {
    let mut request = served
        .request(Method::GET, &format!("{}/events{query}", path_of(TENANT)))
        .header(header::ACCEPT, "text/event-stream");
    if let Some(id) = last_id {
        request = request.header("Last-Event-ID", id);
    }
    request.send().await.unwrap()
}

fn pair(id: &str, kind: &str) -> (String, String) {
    (id.to_owned(), kind.to_owned())
}

#[tokio::test]
async fn a_stream_has_what_is_there_and_then_what_comes() {
    let served = Served::alone().await;
    served.append(TENANT, "a").await;
    served.append(TENANT, "b").await;
    let mut stream = Followed::open(&served, "", None).await;
    assert_eq!(stream.event().await, pair("1-1", "a"));
    assert_eq!(stream.event().await, pair("1-2", "b"));
    served.append(TENANT, "c").await;
    assert_eq!(stream.event().await, pair("1-3", "c"));

    let mut later = Followed::open(&served, "?after=1-1&limit=1", None).await;
    assert_eq!(later.event().await, pair("1-2", "b"));
    assert_eq!(later.event().await, pair("1-3", "c"));
    let mut of_kind = Followed::open(&served, "?kind=c", None).await;
    assert_eq!(of_kind.event().await, pair("1-3", "c"));
}

#[tokio::test]
async fn a_stream_that_moved_is_taken_up_where_it_ended() {
    let served = Served::alone().await;
    served.append(TENANT, "a").await;
    let mut stream = Followed::open(&served, "", None).await;
    assert_eq!(stream.event().await, pair("1-1", "a"));
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    let moved = stream.next().await.unwrap();
    assert!(moved.contains(&"event: moved".to_owned()), "{moved:?}");
    assert!(moved.iter().any(|line| line.starts_with("retry: ")), "{moved:?}");
    assert!(
        moved.iter().any(|line| line.starts_with("data: ") && line.contains("\"after\":\"1-1\"")),
        "{moved:?}"
    );
    assert_eq!(stream.next().await, None);

    served.append(TENANT, "b").await;
    let mut again = Followed::open(&served, "?after=1-0", Some("1-1")).await;
    assert_eq!(again.event().await, pair("2-2", "b"));
}

#[tokio::test]
async fn a_quiet_stream_sends_comments() {
    let served = Served::alone_with(|config| config.follow.heartbeat_every = Duration::from_millis(20)).await;
    served.append(TENANT, "a").await;
    let mut stream = Followed::open(&served, "", Some("1-1")).await;
    for _ in 0..3 {
        assert_eq!(stream.next().await.unwrap(), [": "]);
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_before_a_stream_begins() {
    let served = Served::alone().await;
    assert_eq!(begin(&served, "", None).await.status(), 404);
    served.append(TENANT, "a").await;
    assert_eq!(begin(&served, "", Some("x")).await.status(), 400);
    assert_eq!(begin(&served, "", Some("1-7")).await.status(), 409);
}

#[tokio::test]
async fn followers_are_bounded_and_their_places_come_back() {
    let served = Served::alone_with(|config| config.follow.followers_per_tenant_max = 1).await;
    served.append(TENANT, "a").await;
    let mut stream = Followed::open(&served, "", None).await;
    stream.event().await;
    assert_eq!(begin(&served, "", None).await.status(), 429);
    drop(stream);
    crate::served::eventually("the place came back", async || begin(&served, "", None).await.status() == 200)
        .await;
}
