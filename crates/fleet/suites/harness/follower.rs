//! Who follows a tenant's events over every move: nothing is left out and nothing comes twice.

use std::{collections::BTreeMap, time::Duration};

use futures::StreamExt as _;
use leasehold_testkit::pass;
use leasehold_types::{LeaseKey, Position};
use serde_json::Value;
use tokio::sync::watch;

use super::{clients, front::Door};

/// How long a stream is left alone before it is taken up again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Longer than the fleet is silent: it sends a comment every few seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What a follower was told.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) tenant: Option<LeaseKey>,
    /// The writes, in the order in which they came.
    pub(super) ids: Vec<String>,
    /// How often it was told that its tenant moves.
    pub(super) moved: u64,
    /// How often a tail was taken back that a crash had taken.
    pub(super) rewound: u64,
    /// How a stream ended that was to go on.
    pub(super) errors: BTreeMap<String, u64>,
    /// What was left out, or came twice.
    pub(super) wrong: Vec<String>,
    last: Option<Position>,
}

/// Follows until `until` says that this many writes are all.
pub(super) async fn follow(
    door: Door,
    tenant: LeaseKey,
    mut until: watch::Receiver<Option<usize>>,
) -> Followed {
    let mut followed = Followed { tenant: Some(tenant.clone()), ..Followed::default() };
    while !followed.has_all(&until) {
        if let Err(error) = followed.one_stream(&door, &tenant, &mut until).await {
            *followed.errors.entry(error).or_default() += 1;
        }
        if !followed.has_all(&until) {
            pass(AGAIN_AFTER).await;
        }
    }
    followed
}

impl Followed {
    fn has_all(&self, until: &watch::Receiver<Option<usize>>) -> bool {
        until.borrow().is_some_and(|all| self.ids.len() >= all) || until.has_changed().is_err()
    }

    /// One connection, from the last event on. An error that is no end of the stream as it is promised.
    async fn one_stream(
        &mut self,
        door: &Door,
        tenant: &LeaseKey,
        until: &mut watch::Receiver<Option<usize>>,
    ) -> Result<(), String> {
        let path = format!("{}/events", clients::path(tenant));
        let last = self.last.map(|last| last.to_string());
        let answer = door.send(|http, base| {
            let mut request = http
                .get(format!("{base}{path}"))
                .header("accept", "text/event-stream")
                .header("leasehold-timeout", "30s");
            if let Some(last) = &last {
                request = request.header("last-event-id", last);
            }
            request
        });
        let answer = answer.await.map_err(|error| format!("follow: {}", chain(&error)))?;
        if !answer.status().is_success() {
            let text = answer.text().await.unwrap_or_default();
            let problem: Value = serde_json::from_str(&text).unwrap_or_default();
            let code = problem["code"].as_str().unwrap_or(&text).to_owned();
            if code == "history_rewound" {
                self.rewind(problem["last_common"].as_str());
                return Ok(());
            }
            return Err(format!("follow: {code}"));
        }
        let mut stream = answer.bytes_stream();
        let mut buffer = String::new();
        loop {
            if self.has_all(until) {
                return Ok(());
            }
            let bytes = tokio::select! {
                bytes = stream.next() => match bytes {
                    Some(bytes) => bytes.map_err(|error| format!("stream: {}", chain(&error)))?,
                    // Its end, as is promised: the client takes it up again.
                    None => return Ok(()),
                },
                _ = until.changed() => continue,
                () = pass(SILENCE_MAX) => return Err("stream: silence".to_owned()),
            };
            buffer.push_str(&String::from_utf8_lossy(&bytes));
            while let Some((message, rest)) = buffer.split_once("\n\n") {
                let (message, rest) = (message.to_owned(), rest.to_owned());
                self.message(&message)?;
                buffer = rest;
            }
        }
    }

    fn message(&mut self, message: &str) -> Result<(), String> {
        let field = |name: &str| {
            message.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim_start))
        };
        match field("event") {
            Some("moved") => self.moved += 1,
            Some("error") if message.contains("history_rewound") => {
                let data: Value = serde_json::from_str(field("data").unwrap_or_default()).unwrap_or_default();
                self.rewind(data["last_common"].as_str());
            }
            Some(other) => return Err(format!("stream: {other}: {}", field("data").unwrap_or_default())),
            None => {
                let Some(id) = field("id") else { return Ok(()) };
                let event: Value =
                    serde_json::from_str(field("data").unwrap_or_default()).unwrap_or_default();
                self.event(id.parse().unwrap(), event["subject_id"].as_str().unwrap_or_default());
            }
        }
        Ok(())
    }

    fn event(&mut self, at: Position, id: &str) {
        let before = self.last.map_or(0, |last| last.seq);
        if at.seq != before + 1 {
            self.wrong.push(format!("{id} came at {at} after {before}"));
        }
        self.last = Some(at);
        self.ids.push(id.to_owned());
    }

    /// What came after that position was lost.
    fn rewind(&mut self, to: Option<&str>) {
        self.rewound += 1;
        self.last = to.and_then(|to| to.parse().ok());
        let kept = self.last.map_or(0, |last| usize::try_from(last.seq).unwrap());
        self.ids.truncate(kept);
    }
}

/// What an error comes from.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = cause.to_string();
        source = cause.source();
    }
    text
}
