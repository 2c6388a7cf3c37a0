//! A caller of one tenant at one replica, who tells the book what it was told.

use std::sync::Arc;

use leasehold_snapshot::Receipt;
use leasehold_tenure::{
    EventQuery, Handle, IdempotencyKey, Json, LedgerError, NewEvent, Router, RunError, Statement,
    TenureError, Value, View,
};
use leasehold_types::{ErrorCode, LeaseKey};
use tokio::sync::watch;

use super::{
    action::{Way, Which},
    book::{Book, Forget, UnderWay},
    sql::Found,
};
use crate::recorder::{Durability, Sent, Served};

/// How many events a page has at the most.
const PAGE_EVENTS: usize = 500;
/// How large the payload is of every sixteenth write.
const LARGE_BYTES: usize = 24 << 10;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS soak (n INTEGER PRIMARY KEY, op TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO soak (op) VALUES (?1) RETURNING op";
const COUNTS: &str = "SELECT op, count(*) FROM soak GROUP BY op ORDER BY op";

/// One call, or a few in a row.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) book: Arc<Book>,
    pub(super) router: Router,
    pub(super) at: usize,
    pub(super) key: LeaseKey,
    /// The number of the call, for the trace.
    pub(super) call: u64,
}

/// The write with this number. One number is one content for ever.
fn event(number: u64) -> NewEvent {
    let len = if number % 16 == 15 { LARGE_BYTES } else { 8 };
    // Letters that do not compress to nothing.
    let letters = (0..len as u64).map(|at| {
        let mixed = (number ^ at.wrapping_mul(0x9E37_79B9)).wrapping_mul(0x2545_F491_4F6C_DD1D);
        char::from(b'a' + u8::try_from(mixed >> 32 & 15).unwrap_or_default())
    });
    let text: String = letters.collect();
    let payload = Json::parse(format!("\"{text}\"")).unwrap_or_default();
    NewEvent::new("soak.write", "soak").with_payload(payload).with_idem_key(id_of(number))
}

fn id_of(number: u64) -> String {
    format!("w-{number:06}")
}

impl Caller {
    fn says(&self, what: &str) {
        let Self { call, key, at, .. } = self;
        self.book.trace.line(format!("  #{call} {key} at r{at}: {what}"));
    }

    fn refused(&self, error: &TenureError) {
        let outcome = if error.outcome_unknown() { ", outcome unknown" } else { "" };
        self.says(&format!("{}{outcome}", error.code()));
        self.book.count(&format!("answer {}{outcome}", error.code()));
    }

    fn done(&self, what: &str) {
        self.says(what);
        self.book.count("answer done");
    }

    fn judged<E: std::fmt::Display>(&self, judged: Result<(), E>) {
        if let Err(breach) = judged {
            self.book.find(Some(&self.key), breach);
        }
    }

    /// The tenant, opened here; told where it is not.
    pub(super) async fn open(&self) -> Option<Handle> {
        let handle = if let Some(handle) = self.router.handle_of(&self.key) {
            handle
        } else {
            let Some(_turn) = self.book.turn(self.at, &self.key) else {
                self.says("another one waits for it here");
                return None;
            };
            match self.router.open(&self.key).await {
                Ok(handle) => handle,
                Err(error) => {
                    self.refused(&error);
                    return None;
                }
            }
        };
        self.book.standing(&self.key, |standing| {
            standing.served_at = Some(self.at);
            standing.is_gone = false;
        });
        Some(handle)
    }

    /// The numbers of the writes that are sent now. While a tenant is being forgotten nothing is sent again: whether the first one
    /// still counts is not known then.
    fn numbers(&self, batch: &[Which]) -> Vec<u64> {
        let mut numbers = self.book.standing(&self.key, |standing| {
            let numbers: Vec<u64> = batch
                .iter()
                .map(|which| match which {
                    Which::Again(number) if standing.next > 0 && standing.forget == Forget::No => {
                        number % standing.next
                    }
                    _ => {
                        standing.next += 1;
                        standing.next - 1
                    }
                })
                .collect();
            numbers
        });
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    pub(super) async fn append(self, batch: Vec<Which>, way: Way, _under_way: UnderWay) {
        if let Some(handle) = self.open().await {
            self.append_to(&handle, &batch, way).await;
        }
    }

    async fn append_to(&self, handle: &Handle, batch: &[Which], way: Way) {
        let numbers = self.numbers(batch);
        let events: Vec<NewEvent> = numbers.iter().map(|number| event(*number)).collect();
        let sent: Vec<Sent> =
            numbers.iter().map(|number| self.book.recorder.sending(&self.key, &id_of(*number))).collect();
        let answer = match way {
            Way::Append => handle.append(events).await,
            Way::View => handle.ledger().append(events).await,
            Way::Run => handle.run(|view: &mut View<'_>| view.append(&events)).map_err(|error| match error {
                RunError::Tenure(error) => error,
                RunError::Work(source) => TenureError::Ledger { source: Arc::new(source) },
            }),
        };
        self.appended(handle, sent, answer);
    }

    fn appended(
        &self,
        handle: &Handle,
        sent: Vec<Sent>,
        answer: Result<Vec<leasehold_tenure::Appended>, TenureError>,
    ) {
        match answer {
            Ok(appended) => {
                let mut told = Vec::with_capacity(appended.len());
                for (sent, appended) in sent.into_iter().zip(appended) {
                    let (position, duplicate) = (appended.position, appended.duplicate);
                    let recorder = &self.book.recorder;
                    self.judged(recorder.acknowledged(sent, position, duplicate, Durability::Local));
                    if !duplicate && position.epoch == handle.epoch() {
                        let place = (self.at, self.key.clone(), position.epoch);
                        self.book.tails().acknowledged(place, position.seq);
                    }
                    self.book.count(if duplicate { "write repeated" } else { "write acknowledged" });
                    told.push(format!("{position}{}", if duplicate { " again" } else { "" }));
                }
                self.done(&format!("at {}", told.join(", ")));
            }
            Err(error) => {
                // Dropped: it may have been executed.
                if !error.outcome_unknown() {
                    for sent in sent {
                        self.book.recorder.refused(sent);
                    }
                }
                self.refused(&error);
            }
        }
    }

    pub(super) async fn execute(self, which: Which, _under_way: UnderWay) {
        let Some(handle) = self.open().await else { return };
        let number = self.book.standing(&self.key, |standing| match which {
            Which::Again(number) if standing.next_sql > 0 && standing.forget == Forget::No => {
                number % standing.next_sql
            }
            _ => {
                standing.next_sql += 1;
                standing.next_sql - 1
            }
        });
        let id = format!("x-{number:06}");
        let statements = vec![
            Statement { sql: CREATE.into(), params: Vec::new() },
            Statement { sql: INSERT.into(), params: vec![Value::Text(id.clone())] },
        ];
        let key = IdempotencyKey::of(id.clone(), &statements);
        self.book.sql().sent(&self.key, &id);
        match handle.ledger().execute(statements, Some(key)).await {
            Ok(answer) => {
                let results = format!("{:?}", answer.results);
                let judged = self.book.sql().told(&self.key, &id, handle.epoch(), results, answer.duplicate);
                self.judged(judged);
                self.book.count(if answer.duplicate { "sql repeated" } else { "sql executed" });
                self.done(if answer.duplicate { "executed before" } else { "executed" });
            }
            Err(error) => {
                if !error.outcome_unknown() {
                    self.book.sql().refused(&self.key, &id);
                }
                self.refused(&error);
            }
        }
    }

    pub(super) async fn read(self, _under_way: UnderWay) {
        let Some(handle) = self.open().await else { return };
        match self.read_from(&handle).await {
            Ok(events) => self.done(&format!("{events} events at epoch {}", handle.epoch())),
            Err(error) => self.refused(&error),
        }
    }

    /// Reads everything that one tenure serves, and has it judged. Answers how many events there are.
    pub(super) async fn read_from(&self, handle: &Handle) -> Result<usize, TenureError> {
        let asked = self.book.recorder.asking();
        let ledger = handle.ledger();
        let (mut line, mut after) = (Vec::new(), None);
        loop {
            let query = EventQuery { after, limit: PAGE_EVENTS, ..EventQuery::default() };
            let page = ledger.events(query).await?;
            line.extend(page.events.iter().map(|event| Served {
                position: event.position,
                id: event.idem_key.clone().unwrap_or_default(),
            }));
            if !page.has_more {
                break;
            }
            after = page.next;
        }
        if let Err(breaches) = self.book.recorder.served(&self.key, handle.epoch(), &line, asked) {
            for breach in breaches {
                self.book.find(Some(&self.key), breach);
            }
        }
        self.book.count("history judged");
        self.read_operations(handle).await?;
        Ok(line.len())
    }

    async fn read_operations(&self, handle: &Handle) -> Result<(), TenureError> {
        let forget = |key| self.book.standing(key, |standing| standing.forget);
        let before = forget(&self.key);
        let asked = self.book.sql().ticket();
        let rows = match handle.ledger().query(COUNTS, Vec::new()).await {
            Ok(rows) => rows.rows,
            // There is no such table yet, or no more.
            Err(TenureError::Ledger { source }) if matches!(*source, LedgerError::Sql { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        if before != Forget::No || forget(&self.key) != Forget::No {
            return Ok(());
        }
        let counts: Vec<(String, i64)> = rows
            .into_iter()
            .filter_map(|row| match row.as_slice() {
                [Value::Text(op), Value::Integer(count)] => Some((op.clone(), *count)),
                _ => None,
            })
            .collect();
        let found = Found { by: handle.epoch(), counts: &counts, asked };
        let judged = self.book.sql().found(&self.key, &found);
        self.judged(judged);
        Ok(())
    }

    pub(super) async fn snapshot(self, _under_way: UnderWay) {
        let Some(handle) = self.open().await else { return };
        let before = self.book.sql().ticket();
        match handle.snapshot().await {
            Ok(published) => {
                if let Some(published) = &published {
                    self.judged(self.book.recorder.published(&self.key, published.position));
                }
                self.book.sql().published(&self.key, handle.epoch(), before);
                self.done(&published.map_or("nothing to publish".into(), |one| one.position.to_string()));
            }
            Err(error) => self.refused(&error),
        }
    }

    pub(super) async fn hand_off(self, _under_way: UnderWay) {
        let Some(handle) = self.router.handle_of(&self.key) else { return self.says("not open here") };
        match handle.handoff().await {
            Ok(()) => {
                self.judged(self.book.recorder.handed_off(&self.key, handle.epoch()));
                self.done("handed off");
            }
            Err(error) => self.refused(&error),
        }
    }

    pub(super) async fn abandon(self, _under_way: UnderWay) {
        let answer = if let Some(handle) = self.router.handle_of(&self.key) {
            handle.abandon().await
        } else {
            let Some(_turn) = self.book.turn(self.at, &self.key) else {
                return self.says("another one waits for it here");
            };
            self.router.abandon(&self.key).await
        };
        match answer {
            Ok(()) => self.done("abandoned"),
            Err(error) => self.refused(&error),
        }
    }

    /// Whether this one may ask for a forget now: one at a time.
    pub(super) fn begins_forget(&self) -> Option<Forget> {
        self.book.standing(&self.key, |standing| {
            let before = standing.forget;
            (before != Forget::Asked).then(|| {
                standing.forget = Forget::Asked;
                before
            })
        })
    }

    /// `before`: how it stood, where that was not settled this asks for the same forget again.
    pub(super) async fn forget(self, before: Forget, _under_way: UnderWay) {
        if before == Forget::No {
            self.book.recorder.forget_sent(&self.key);
        }
        let answer = if let Some(handle) = self.router.handle_of(&self.key) {
            handle.forget().await
        } else {
            let Some(_turn) = self.book.turn(self.at, &self.key) else {
                self.not_forgotten(before);
                return self.says("another one waits for it here");
            };
            self.router.forget(&self.key).await
        };
        self.forget_answered(before, answer);
    }

    fn not_forgotten(&self, before: Forget) {
        if before == Forget::No {
            self.book.recorder.forget_refused(&self.key);
        }
        self.book.standing(&self.key, |standing| standing.forget = before);
    }

    fn forget_answered(&self, before: Forget, answer: Result<Receipt, TenureError>) {
        match answer {
            Ok(receipt) => {
                self.book.recorder.forgotten(&self.key, receipt.floor);
                self.book.sql().forgotten(&self.key, receipt.floor);
                self.book.standing(&self.key, |standing| {
                    standing.forget = Forget::No;
                    standing.is_gone = true;
                });
                self.done(&format!("forgotten up to {}, {} objects", receipt.floor, receipt.objects_deleted));
            }
            Err(error) => {
                match error.code() {
                    // Nobody ever had it: an earlier try of this forget did nothing either.
                    ErrorCode::TenantUnknown => self.not_forgotten(Forget::No),
                    ErrorCode::LeaseHeld => self.not_forgotten(before),
                    _ => self.book.standing(&self.key, |standing| standing.forget = Forget::Unsettled),
                }
                self.refused(&error);
            }
        }
    }

    /// Work that holds its place until it is told to go on, and then writes.
    pub(super) async fn work(self, mut go: watch::Receiver<bool>, _under_way: UnderWay) {
        let Some(handle) = self.open().await else { return };
        let me = self.clone();
        let of = handle.clone();
        let outcome = handle
            .run_async(move |ledger| async move {
                // An error says that nobody is left to tell it.
                let _ = go.wait_for(|go| *go).await;
                let numbers = me.numbers(&[Which::New]);
                let events = numbers.iter().map(|number| event(*number)).collect();
                let sent =
                    numbers.iter().map(|number| me.book.recorder.sending(&me.key, &id_of(*number))).collect();
                let answer = ledger.append(events).await;
                me.appended(&of, sent, answer);
            })
            .await;
        if let Err(error) = outcome {
            self.refused(&error);
        }
    }
}
