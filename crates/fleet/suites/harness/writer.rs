//! A client that writes to one tenant, one write after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use leasehold_proof::recorder::{Durability, Recorder};
use leasehold_testkit::pass;
use leasehold_types::{Clock as _, LeaseKey, Moment, Position, SystemClock};
use reqwest::Response;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    clients::{self, patient, problem},
    follower::chain,
    front::Door,
};

/// How long a client lets a write wait for its tenant.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a client waits before it repeats what failed.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How often it repeats one write at the most.
const REPEATS_MAX: u32 = 600;

const MAKE: &str = "CREATE TABLE IF NOT EXISTS writes (id TEXT NOT NULL)";

/// How it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Events under idempotency keys: what failed is sent again.
    Keyed,
    /// Events without: what may have been executed is never sent again.
    Unkeyed,
    /// Rows by SQL, under idempotency keys.
    Sql,
}

/// What a writer did and was told.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) tenant: LeaseKey,
    pub(crate) kind: Kind,
    pub(crate) requests: u64,
    /// In the order of their acknowledgements, which is the one in which they were sent.
    pub(crate) acknowledged: Vec<String>,
    /// May have been executed.
    pub(crate) unknown: BTreeSet<String>,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) latencies: Vec<Duration>,
    /// The longest time from one acknowledgement to the next.
    pub(crate) longest: Duration,
    /// When the last one was heard.
    pub(crate) last_heard: Option<Moment>,
    /// Each acknowledgement: its epoch, and when it was heard.
    pub(crate) epochs: Vec<(u64, Moment)>,
}

/// Its tables.
pub(super) async fn prepare(door: &Door, tenant: &LeaseKey) {
    let url = format!("{}/execute", clients::path(tenant));
    let body = json!({ "statements": [{ "sql": MAKE }] });
    let answer =
        door.send(|http, base| patient(http.post(format!("{base}{url}")).json(&body), PATIENCE)).await;
    let answer = answer.unwrap();
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
}

pub(super) struct Writer {
    pub(super) door: Door,
    pub(super) recorder: Arc<Recorder>,
    pub(super) every: Duration,
    pub(super) written: Written,
}

impl Written {
    pub(super) fn new(tenant: LeaseKey, kind: Kind) -> Self {
        Self {
            tenant,
            kind,
            requests: 0,
            acknowledged: Vec::new(),
            unknown: BTreeSet::new(),
            errors: BTreeMap::new(),
            latencies: Vec::new(),
            longest: Duration::ZERO,
            last_heard: None,
            epochs: Vec::new(),
        }
    }
}

impl Writer {
    /// Writes until `stop` says so, and until what was begun is known.
    pub(super) async fn run(mut self, stop: watch::Receiver<bool>) -> Written {
        let mut number = 0_u32;
        while !*stop.borrow() {
            number += 1;
            self.write(&format!("{}-{number}", self.written.tenant.tenant())).await;
            pass(self.every).await;
        }
        self.written
    }

    /// Sends the writes `ids` again, as who does not know whether they are there.
    pub(super) async fn again(&mut self, ids: &[String]) {
        for id in ids {
            self.write(id).await;
        }
    }

    async fn write(&mut self, id: &str) {
        for _ in 0..REPEATS_MAX {
            self.written.requests += 1;
            let sent =
                (self.written.kind != Kind::Sql).then(|| self.recorder.sending(&self.written.tenant, id));
            let began = SystemClock.now();
            let error = match self.send(id).await {
                Ok(answer) if answer.status().is_success() => {
                    let answer: Value = answer.json().await.unwrap();
                    self.heard(id, began);
                    if let Some(sent) = sent {
                        let position: Position = answer["position"].as_str().unwrap().parse().unwrap();
                        let duplicate = answer["duplicate"] == true;
                        self.written.epochs.push((position.epoch.get(), SystemClock.now()));
                        // A breach is kept by the recorder, and found at the end.
                        drop(self.recorder.acknowledged(sent, position, duplicate, Durability::Local));
                    }
                    return;
                }
                Ok(answer) => {
                    let (error, executed_not) = problem(answer).await;
                    if executed_not {
                        if let Some(sent) = sent {
                            self.recorder.refused(sent);
                        }
                    } else {
                        self.written.unknown.insert(id.to_owned());
                    }
                    error
                }
                Err(error) => {
                    // Where nobody listens nothing was sent.
                    if let (true, Some(sent)) = (error.is_connect(), sent) {
                        self.recorder.refused(sent);
                    } else {
                        self.written.unknown.insert(id.to_owned());
                    }
                    chain(&error)
                }
            };
            println!("{} after {:?}: {id}: {error}", SystemClock.wall(), SystemClock.now().since(began));
            *self.written.errors.entry(error).or_default() += 1;
            if self.written.kind == Kind::Unkeyed && self.written.unknown.contains(id) {
                return;
            }
            pass(AGAIN_AFTER).await;
        }
        panic!("{id} was not acknowledged: {:?}", self.written.errors);
    }

    fn heard(&mut self, id: &str, began: Moment) {
        let now = SystemClock.now();
        self.written.latencies.push(now.since(began));
        if let Some(last) = self.written.last_heard {
            self.written.longest = self.written.longest.max(now.since(last));
        }
        self.written.last_heard = Some(now);
        self.written.unknown.remove(id);
        if !self.written.acknowledged.iter().any(|known| known == id) {
            self.written.acknowledged.push(id.to_owned());
        }
    }

    async fn send(&self, id: &str) -> Result<Response, reqwest::Error> {
        let tenant = clients::path(&self.written.tenant);
        let (path, body) = match self.written.kind {
            Kind::Sql => {
                // The table may have gone with a tail.
                let make = json!({ "sql": MAKE });
                let insert = json!({ "sql": "INSERT INTO writes (id) VALUES (?)", "params": [id] });
                (format!("{tenant}/execute"), json!({ "statements": [make, insert] }))
            }
            Kind::Keyed | Kind::Unkeyed => {
                let event = json!({ "kind": "fleet.write", "actor": "fleet", "subject_id": id, "payload": { "id": id } });
                (format!("{tenant}/events"), event)
            }
        };
        let is_keyed = self.written.kind != Kind::Unkeyed;
        let sent = self.door.send(|http, base| {
            let request = patient(http.post(format!("{base}{path}")).json(&body), PATIENCE);
            if is_keyed { request.header("idempotency-key", id) } else { request }
        });
        sent.await
    }
}
