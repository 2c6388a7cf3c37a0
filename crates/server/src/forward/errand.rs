//! A client's request on its way to whoever holds its tenant, and round again while that changes.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{MatchedPath, Request},
    http::{HeaderName, HeaderValue, Method, Response as HttpResponse, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use leasehold_ledger::NewEvent;
use leasehold_types::{Epoch, ErrorCode, LeaseKey};

use super::{
    Forwarding, Owner, Verdict,
    attempt::AskError,
    counters::Forwarded,
    headers::{OWNER_EPOCH, outgoing, strip_hop_by_hop},
    kept::Kept,
    relay::{Relaying, relayed},
    verdict::may_tell,
    vigil,
};
use crate::{
    app::{App, PARKED_WAIT_MAX, PARKED_WAIT_MIN},
    auth::{CALLER, Identity, passed_on},
    bounds::Counted,
    extract::{IDEMPOTENCY_KEY, pass_over},
    memory::Share,
    patience::{self, Patience},
    problem::Problem,
    routes::events::wants_stream,
    stage::Stage,
};

/// What the owner's own time-out gets beyond the caller's patience, to be on its way here.
const ANSWER_SLACK: Duration = Duration::from_secs(2);
/// How long the rest of a problem may take that has begun.
const PROBLEM_TIME_MAX: Duration = Duration::from_secs(5);
/// The longest problem that is read.
const PROBLEM_BYTES_MAX: usize = 256 * 1024;
/// How often one of them may say that the tenant is on its way before another one is asked.
const MOVING_MAX: u32 = 8;
/// How long a relayed body may be quiet, unless heartbeats are rarer.
const QUIET_MAX: Duration = Duration::from_secs(60);

/// One request of a client.
pub(super) struct Errand<'a> {
    pub(super) app: &'a App,
    pub(super) forwarding: &'a Forwarding,
    pub(super) key: LeaseKey,
    pub(super) parts: Parts,
    pub(super) route: String,
    pub(super) kept: Kept,
    patience: Patience,
    next: Next,
    /// Whether an attempt may have been executed whose answer was lost.
    may_have_executed: bool,
    /// What is answered if there is no other attempt.
    last: Option<Response>,
    /// Whether that is this replica's own success, beside which the owner would only know more.
    last_is_success: bool,
    /// The replicas that did not answer, or did not open it.
    pub(super) passed_over: Vec<String>,
    /// How often the last place said that the tenant is on its way.
    moving: u32,
}

/// What came of an attempt.
enum Step {
    /// The answer.
    Answer(Response),
    /// It is known where to ask instead, at once.
    Elsewhere,
    /// The place that was chosen did not open it, and executed nothing: the next one at once, whatever is left of the caller's time.
    NextPlace,
    /// Nothing was executed, or it may be executed twice: again after a wait.
    Again,
}

impl<'a> Errand<'a> {
    pub(super) fn new(
        app: &'a App,
        forwarding: &'a Forwarding,
        key: LeaseKey,
        request: Request,
        next: Next,
    ) -> Self {
        let (parts, body) = request.into_parts();
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let route = route.rsplit_once("{tenant}").map_or("", |(_, rest)| rest).to_owned();
        let patience = Patience::of_headers(&parts.headers, app);
        let kept = Kept::new(body, app.config.limits.body_bytes_max, Share::of(&parts));
        let (may_have_executed, last, last_is_success, passed_over) = (false, None, false, Vec::new());
        Self {
            app,
            forwarding,
            key,
            parts,
            route,
            kept,
            patience,
            next,
            may_have_executed,
            last,
            last_is_success,
            passed_over,
            moving: 0,
        }
    }

    pub(super) async fn run(mut self) -> Response {
        // Before it is read, here or by another replica.
        if let Err(problem) = self.kept.reserve() {
            if let Some(body) = self.kept.reader() {
                pass_over(self.app, body).await;
            }
            return problem.into_response();
        }
        let mut wait = PARKED_WAIT_MIN;
        let mut has_hopped = false;
        loop {
            let step = match self.whereabouts().await {
                Some(owner) => self.there(&owner).await,
                None => self.here().await,
            };
            match step {
                Step::Answer(response) => return self.settled(response),
                Step::NextPlace if !self.kept.is_lost() => {
                    self.app.metrics.forward.retries.inc();
                    continue;
                }
                Step::Elsewhere if !has_hopped && !self.kept.is_lost() => {
                    has_hopped = true;
                    continue;
                }
                Step::Elsewhere | Step::NextPlace | Step::Again => has_hopped = false,
            }
            let left = self.patience.left(self.app.clock.as_ref());
            if self.last_is_success || left.is_zero() || self.kept.is_lost() {
                return self.given_up();
            }
            let Ok(place) = self.app.parked.try_acquire() else { return self.given_up() };
            let has_time = tokio::select! {
                biased;
                () = self.forwarding.has_no_time() => false,
                () = self.app.timer.sleep(self.app.entropy.jittered(wait).min(left)) => true,
            };
            drop(place);
            if !has_time {
                return self.given_up();
            }
            wait = (wait * 2).min(PARKED_WAIT_MAX);
            self.app.metrics.forward.retries.inc();
        }
    }

    /// This replica's own answer.
    async fn here(&mut self) -> Step {
        let Some(body) = self.kept.reader() else { return Step::Again };
        let request = Request::from_parts(self.parts.clone(), body);
        let response = self.next.clone().run(request).await;
        match response.extensions().get::<Verdict>().cloned() {
            Some(Verdict::Held(owner))
                if owner.replica != self.app.replica.as_str() && owner.is_reachable() =>
            {
                self.forwarding.owners.learn(&self.key, &owner);
                self.last_is_success = response.status().is_success();
                self.last = Some(response);
                Step::Elsewhere
            }
            // It is being opened here, or a former process of this id had it: what is asked of its owner waits until there is one.
            Some(Verdict::Held(owner)) if owner.replica == self.app.replica.as_str() => {
                self.last = Some(response);
                Step::Again
            }
            Some(Verdict::Moving) if self.app.stage.get() == Stage::Draining => {
                self.last = Some(response);
                Step::Again
            }
            _ => Step::Answer(response),
        }
    }

    /// The answer of another replica.
    async fn there(&mut self, owner: &Owner) -> Step {
        let is_stream = self.route == "/events" && wants_stream(&self.parts.headers);
        let bound = if is_stream { &self.app.followers } else { &self.app.in_flight };
        let place = match bound.enter(&self.key) {
            Ok(place) => place,
            Err(problem) => return Step::Answer(problem.into_response()),
        };
        let Some(body) = self.kept.reader() else { return Step::Again };
        let (timer, time_max) = (Arc::clone(&self.app.timer), self.time_max());
        let (app, forwarding, key) = (self.app, self.forwarding, self.key.clone());
        let asked = tokio::select! {
            biased;
            answered = self.ask(owner, body) => answered,
            () = timer.sleep(time_max) => Err(AskError::Late),
            () = vigil::until_gone(app, &key, owner) => Err(AskError::Gone),
            () = forwarding.has_no_time() => Err(AskError::Ended),
        };
        // A body of which no byte was asked for is whole here still.
        let asked = match asked {
            Err(AskError::Gone) if self.kept.is_untouched() => {
                Err(AskError::NotSent("its lease ran out before it took anything".to_owned()))
            }
            asked => asked,
        };
        match asked {
            Ok(response) => self.judge(owner, response, place, is_stream).await,
            Err(error) => self.unanswered(owner, &error),
        }
    }

    async fn ask(&mut self, owner: &Owner, body: Body) -> Result<HttpResponse<Incoming>, AskError> {
        let mut headers = outgoing(&self.parts.headers, &self.forwarding.by, self.forwarding.secrets.sent());
        let caller = self.parts.extensions.get::<Identity>().and_then(Identity::caller);
        if let Some(caller) = caller.and_then(|caller| passed_on(&caller)) {
            headers.insert(CALLER, caller);
        }
        let left = self.patience.left(self.app.clock.as_ref()).as_millis();
        // A time that is none is the owner's to refuse.
        if Patience::is_valid(&self.parts.headers)
            && let Ok(left) = HeaderValue::from_str(&format!("{left}ms"))
        {
            headers.insert(HeaderName::from_static(patience::HEADER), left);
        }
        self.forwarding.ask(&owner.endpoint, self.parts.method.clone(), &self.parts.uri, headers, body).await
    }

    /// How long the owner's answer may take to begin.
    fn time_max(&self) -> Duration {
        let left = self.patience.left(self.app.clock.as_ref());
        match self.route.as_str() {
            "/events" | "/query" | "/execute" => left + ANSWER_SLACK,
            "" if self.parts.method != Method::DELETE => left + ANSWER_SLACK,
            // Bounded by the owner: by the time of a body, of a drain, of an upload.
            _ => {
                let config = &self.app.config;
                config.limits.timeout_max
                    + config.drain_timeout
                    + config.snapshot.upload_timeout
                    + ANSWER_SLACK
            }
        }
    }

    /// What another replica's answer means.
    async fn judge(
        &mut self,
        owner: &Owner,
        response: HttpResponse<Incoming>,
        place: Counted,
        is_stream: bool,
    ) -> Step {
        let (mut head, incoming) = response.into_parts();
        strip_hop_by_hop(&mut head.headers);
        self.app.survey.heard_of(self.app, owner, &mut head.headers);
        let epoch = head
            .headers
            .remove(OWNER_EPOCH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok())
            .and_then(|number| Epoch::new(number).ok());
        if !may_tell(head.status, &head.headers) {
            self.note_owner(owner, epoch);
            self.app.metrics.forward.forwarded(Forwarded::Answered);
            let quiet_max = QUIET_MAX.max(self.app.config.follow.heartbeat_every * 4);
            let relaying = Relaying {
                timer: Arc::clone(&self.app.timer),
                idle_max: quiet_max,
                _place: place,
                ending: self.forwarding.ending.subscribe(),
                is_stream: is_stream && head.status.is_success(),
            };
            return Step::Answer(Response::from_parts(head, relayed(incoming, relaying)));
        }
        let read = tokio::select! {
            biased;
            read = Limited::new(incoming, PROBLEM_BYTES_MAX).collect() => read.map_err(|error| error.to_string()),
            () = self.app.timer.sleep(PROBLEM_TIME_MAX) => Err("its answer did not end".to_owned()),
        };
        let body = match read {
            Ok(read) => read.to_bytes(),
            Err(error) => return self.unanswered(owner, &AskError::Lost(error)),
        };
        let verdict = Verdict::read(&body);
        let mut response = Response::from_parts(head, Body::from(body));
        if let Some(verdict) = verdict.clone() {
            response.extensions_mut().insert(verdict);
        }
        match verdict {
            Some(Verdict::Held(other)) => {
                self.app.metrics.forward.forwarded(Forwarded::Moved);
                self.forwarding.owners.forget(&self.key, owner);
                self.last = Some(response);
                // Who says that it is held by itself means its former process; who names this replica is late.
                let is_news = other.replica != owner.replica && other.replica != self.app.replica.as_str();
                if is_news && other.is_reachable() && self.forwarding.owners.learn(&self.key, &other) {
                    self.app.metrics.forward.owner_corrected();
                    return Step::Elsewhere;
                }
                Step::Again
            }
            Some(Verdict::Moving) => {
                self.app.metrics.forward.forwarded(Forwarded::Moved);
                self.forwarding.owners.forget(&self.key, owner);
                self.last = Some(response);
                self.moving += u32::from(owner.is_chosen());
                if self.moving >= MOVING_MAX {
                    self.pass_over(owner);
                }
                Step::Again
            }
            Some(Verdict::Refused) if owner.is_chosen() => {
                self.app.metrics.forward.forwarded(Forwarded::Answered);
                self.last = Some(response);
                self.pass_over(owner);
                Step::NextPlace
            }
            Some(Verdict::PeerRefused) if owner.is_chosen() => {
                self.app.metrics.forward.forwarded(Forwarded::Refused);
                tracing::warn!(key = %self.key, replica = owner.replica, "the replica that the tenant belongs to does not accept this one's peer secret");
                self.pass_over(owner);
                Step::NextPlace
            }
            Some(Verdict::PeerRefused) => {
                self.app.metrics.forward.forwarded(Forwarded::Refused);
                tracing::warn!(key = %self.key, owner = owner.replica, "the owner does not accept this replica's peer secret");
                let detail =
                    format!("{} is held by replica {}, which accepts no forwarding", self.key, owner.replica);
                Step::Answer(self.about(owner, ErrorCode::LeaseHeld, detail).into_response())
            }
            Some(Verdict::Refused | Verdict::Elsewise) | None => {
                self.note_owner(owner, epoch);
                self.app.metrics.forward.forwarded(Forwarded::Answered);
                Step::Answer(response)
            }
        }
    }

    /// What to do without an answer.
    fn unanswered(&mut self, owner: &Owner, error: &AskError) -> Step {
        self.forwarding.owners.forget(&self.key, owner);
        let (code, outcome, said) = match error {
            AskError::NotSent(said) => (ErrorCode::OwnerUnreachable, Forwarded::Unreachable, said.as_str()),
            AskError::Lost(said) => (ErrorCode::OwnerUnreachable, Forwarded::Lost, said.as_str()),
            AskError::Gone => {
                (ErrorCode::OwnerUnreachable, Forwarded::Lost, "its lease ended before it answered")
            }
            AskError::Late => (ErrorCode::Timeout, Forwarded::Late, "no answer in time"),
            AskError::Ended => {
                (ErrorCode::Draining, Forwarded::Late, "no answer while this replica had time")
            }
        };
        self.app.metrics.forward.forwarded(outcome);
        tracing::debug!(key = %self.key, owner = owner.replica, endpoint = owner.endpoint, said, "not answered");
        let mut problem =
            self.about(owner, code, format!("replica {} did not answer for {}", owner.replica, self.key));
        if let AskError::NotSent(_) = error {
            self.pass_over(owner);
        } else if !self.reads() {
            problem = problem.outcome_unknown();
            if matches!(error, AskError::Late | AskError::Ended) || !self.is_keyed() {
                return Step::Answer(problem.into_response());
            }
            self.may_have_executed = true;
        }
        if !self.last_is_success {
            self.last = Some(problem.into_response());
        }
        match error {
            AskError::Late | AskError::Ended => Step::Answer(self.given_up_with()),
            AskError::NotSent(_) if owner.is_chosen() => Step::NextPlace,
            _ => Step::Again,
        }
    }

    /// Asks this one no more to open it.
    fn pass_over(&mut self, owner: &Owner) {
        self.moving = 0;
        if !self.passed_over.contains(&owner.replica) {
            self.passed_over.push(owner.replica.clone());
        }
    }

    fn about(&self, owner: &Owner, code: ErrorCode, detail: String) -> Problem {
        Problem::new(code, detail).of(&self.key).owned_by(owner)
    }

    fn note_owner(&self, owner: &Owner, epoch: Option<Epoch>) {
        match epoch {
            Some(_) => _ = self.forwarding.owners.learn(&self.key, &Owner { epoch, ..owner.clone() }),
            // It does not hold the tenant any more.
            None => self.forwarding.owners.forget(&self.key, owner),
        }
    }

    /// Whether the request changes nothing.
    fn reads(&self) -> bool {
        matches!(self.parts.method, Method::GET | Method::HEAD) || self.route == "/query"
    }

    /// Whether the request takes effect once, however often it is executed: by a key for all of it, or one for each event.
    fn is_keyed(&self) -> bool {
        if self.parts.method != Method::POST || !matches!(self.route.as_str(), "/events" | "/execute") {
            return false;
        }
        self.parts.headers.contains_key(IDEMPOTENCY_KEY)
            || (self.route == "/events"
                && self.kept.bytes().is_some_and(|body| {
                    NewEvent::batch_from_json(&body, self.app.config.limits.batch_events_max)
                        .is_ok_and(|events| events.iter().all(|event| event.idem_key.is_some()))
                }))
    }

    fn given_up_with(&mut self) -> Response {
        self.last.take().unwrap_or_else(|| {
            Problem::new(ErrorCode::Timeout, format!("{} did not answer in time", self.key))
                .of(&self.key)
                .into_response()
        })
    }

    fn given_up(mut self) -> Response {
        let last = self.given_up_with();
        self.settled(last)
    }

    /// The answer, unless it says less than is known: a refusal after an attempt that may have been executed is no "not executed".
    fn settled(&self, response: Response) -> Response {
        if !self.may_have_executed || response.extensions().get::<Verdict>().is_none() {
            return response;
        }
        let detail =
            format!("the answer of the replica that held {} was lost, and nobody answered since", self.key);
        Problem::new(ErrorCode::OwnerUnreachable, detail).of(&self.key).outcome_unknown().into_response()
    }
}
