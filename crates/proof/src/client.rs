//! A caller of one replica, for one tenant, that tells the recorder what it was told.

use std::{fmt, sync::Arc, time::Duration};

use leasehold_types::{Epoch, Floor, LeaseKey, Position};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    recorder::{Durability, Recorder, Served},
    world::ProofError,
};

/// How many events a page of a history may have: more than any of these histories has.
const PAGE_EVENTS: usize = 1_000;
/// How long a request may take over what its replica lets it wait: one that has no answer then has none.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
/// How long a request may wait for its tenant to settle where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a history is read again that an opening came into.
const READS_MAX: u32 = 50;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered<T> {
    /// It was done.
    Done(T),
    /// It was refused with this code, and not executed.
    Refused(String),
    /// It may have been executed: the answer says so, or there is none. With what is known.
    Unknown(String),
}

impl<T: fmt::Debug> Answered<T> {
    /// What it came to, where it has to be done.
    pub fn done(self) -> Result<T, ProofError> {
        match self {
            Self::Done(done) => Ok(done),
            other => Err(format!("expected to be done: {other:?}").into()),
        }
    }

    /// Whether it was done.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// A caller. What breaks the ground rule is the error of the call that showed it.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    tenant: LeaseKey,
    /// The tenant's URL.
    url: String,
    patience: Duration,
    recorder: Arc<Recorder>,
}

impl Client {
    /// A caller of the replica at `endpoint`.
    pub fn new(endpoint: &str, tenant: &LeaseKey, recorder: Arc<Recorder>) -> Result<Self, ProofError> {
        let url = format!("{endpoint}/v1/orgs/{}/tenants/{}", tenant.org(), tenant.tenant());
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, tenant: tenant.clone(), url, patience: PATIENCE, recorder })
    }

    /// The same caller, who lets a request wait so long for the tenant to settle.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Whom it tells.
    #[must_use]
    pub const fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let patience = format!("{}ms", self.patience.as_millis());
        self.http
            .request(method, format!("{}{path}", self.url))
            .header("leasehold-timeout", patience)
            .timeout(self.patience + ANSWERED_WITHIN)
    }

    async fn send(&self, request: RequestBuilder) -> Answered<Value> {
        let answer = async {
            let response = request.send().await?;
            Ok::<_, reqwest::Error>((response.status(), response.json::<Value>().await?))
        };
        match answer.await {
            Ok((status, body)) if status.is_success() => Answered::Done(body),
            Ok((_, problem)) if problem["executed"] == "no" => {
                Answered::Refused(problem["code"].as_str().unwrap_or_default().to_owned())
            }
            Ok((status, problem)) => Answered::Unknown(format!("{status}: {problem}")),
            Err(error) => Answered::Unknown(error.to_string()),
        }
    }

    /// Opens the tenant here and creates it where it is not there or was forgotten. Answers its epoch.
    pub async fn open(&self) -> Result<Answered<Epoch>, ProofError> {
        Ok(match self.send(self.request(Method::PUT, "")).await {
            Answered::Done(status) => Answered::Done(epoch_of(&status)?),
            Answered::Refused(code) => Answered::Refused(code),
            Answered::Unknown(what) => Answered::Unknown(what),
        })
    }

    /// Appends the write `id`. Answers its position.
    pub async fn append(&self, id: &str) -> Result<Answered<Position>, ProofError> {
        self.append_with(id, json!({ "id": id })).await
    }

    /// The same with other details, which have to be the same for an id for ever.
    pub async fn append_with(&self, id: &str, payload: Value) -> Result<Answered<Position>, ProofError> {
        let event = json!({
            "kind": "proof.write",
            "actor": "proof",
            "subject_id": id,
            "payload": payload,
            "idem_key": id,
        });
        let sent = self.recorder.sending(&self.tenant, id);
        Ok(match self.send(self.request(Method::POST, "/events").json(&event)).await {
            Answered::Done(answer) => {
                let position = position_of(&answer["position"])?;
                let duplicate = answer["duplicate"] == true;
                self.recorder.acknowledged(sent, position, duplicate, Durability::Local)?;
                Answered::Done(position)
            }
            Answered::Refused(code) => {
                self.recorder.refused(sent);
                Answered::Refused(code)
            }
            Answered::Unknown(what) => Answered::Unknown(what),
        })
    }

    /// Has published what is not. Answers up to where this epoch is published.
    pub async fn snapshot(&self) -> Result<Answered<Option<Position>>, ProofError> {
        Ok(match self.send(self.request(Method::POST, "/snapshot")).await {
            Answered::Done(answer) if answer["snapshot"].is_null() => Answered::Done(None),
            Answered::Done(answer) => {
                let position = position_of(&answer["snapshot"]["position"])?;
                self.recorder.published(&self.tenant, position)?;
                Answered::Done(Some(position))
            }
            Answered::Refused(code) => Answered::Refused(code),
            Answered::Unknown(what) => Answered::Unknown(what),
        })
    }

    /// Hands off the tenure at `epoch`. What was handed off is said by the answer: where that is a later tenure, of whoever took over,
    /// nothing is known of this one.
    pub async fn handoff(&self, epoch: Epoch) -> Result<Answered<()>, ProofError> {
        Ok(match self.send(self.request(Method::POST, "/handoff")).await {
            Answered::Done(status) => {
                if epoch_of(&status)? == epoch {
                    self.recorder.handed_off(&self.tenant, epoch)?;
                }
                Answered::Done(())
            }
            Answered::Refused(code) => Answered::Refused(code),
            Answered::Unknown(what) => Answered::Unknown(what),
        })
    }

    /// Has the lease given back as it is.
    pub async fn abandon(&self) -> Answered<()> {
        match self.send(self.request(Method::POST, "/abandon")).await {
            Answered::Done(_) => Answered::Done(()),
            Answered::Refused(code) => Answered::Refused(code),
            Answered::Unknown(what) => Answered::Unknown(what),
        }
    }

    /// Forgets the tenant. Answers the floor of the receipt.
    pub async fn forget(&self) -> Result<Answered<Floor>, ProofError> {
        self.recorder.forget_sent(&self.tenant);
        Ok(match self.send(self.request(Method::DELETE, "")).await {
            Answered::Done(receipt) => {
                let floor = receipt["floor"].as_u64().ok_or_else(|| format!("no receipt: {receipt}"))?;
                let floor = Floor::new(floor)?;
                self.recorder.forgotten(&self.tenant, floor);
                Answered::Done(floor)
            }
            Answered::Refused(code) => {
                self.recorder.forget_refused(&self.tenant);
                Answered::Refused(code)
            }
            Answered::Unknown(what) => Answered::Unknown(what),
        })
    }

    /// Reads the whole history, as one tenure of this replica serves it, and has it judged. Answers that tenure's epoch and the
    /// writes in it.
    pub async fn read(&self) -> Result<Answered<(Epoch, Vec<String>)>, ProofError> {
        for _ in 0..READS_MAX {
            let asked = self.recorder.asking();
            let before = self.send(self.request(Method::GET, "")).await;
            let page = self.request(Method::GET, &format!("/events?limit={PAGE_EVENTS}"));
            let page = match self.send(page).await {
                Answered::Done(page) => page,
                Answered::Refused(code) => return Ok(Answered::Refused(code)),
                Answered::Unknown(what) => return Ok(Answered::Unknown(what)),
            };
            let after = self.send(self.request(Method::GET, "")).await;
            let (Answered::Done(before), Answered::Done(after)) = (before, after) else { continue };
            // Only the replica that serves it knows its phase.
            if before["epoch"] != after["epoch"] || !before["phase"].is_string() {
                continue;
            }
            let (by, line) = (epoch_of(&after)?, history_of(&page)?);
            self.recorder.served(&self.tenant, by, &line, asked).map_err(|breaches| {
                breaches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            })?;
            return Ok(Answered::Done((by, line.into_iter().map(|event| event.id).collect())));
        }
        Err(format!("{} was opened and ended {READS_MAX} times while it was read", self.tenant).into())
    }
}

fn epoch_of(status: &Value) -> Result<Epoch, ProofError> {
    let epoch = status["epoch"].as_u64().ok_or_else(|| format!("no epoch in {status}"))?;
    Ok(Epoch::new(epoch)?)
}

fn position_of(position: &Value) -> Result<Position, ProofError> {
    let position = position.as_str().ok_or_else(|| format!("`{position}` is no position"))?;
    Ok(position.parse()?)
}

fn history_of(page: &Value) -> Result<Vec<Served>, ProofError> {
    let events = page["events"].as_array().filter(|_| page["has_more"] == false);
    let events = events.ok_or_else(|| format!("not a whole history: {page}"))?;
    let served = |event: &Value| {
        // Not its key: there are writers without one.
        let id =
            event["subject_id"].as_str().ok_or_else(|| format!("an event without a subject: {event}"))?;
        Ok(Served { position: position_of(&event["position"])?, id: id.to_owned() })
    };
    events.iter().map(served).collect()
}
