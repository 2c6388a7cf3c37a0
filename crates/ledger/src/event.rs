//! Events: what callers append and read.

use leasehold_types::{Position, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeSeed as _};
use sha2::{Digest as _, Sha256};

use crate::{Held, Json, LedgerError, Limits, lists::First};

/// Bytes that an event's `kind` may have.
const KIND_BYTES_MAX: usize = 128;
/// Bytes that an event's other texts may have, the idempotency key among them.
pub(crate) const TEXT_BYTES_MAX: usize = 256;

/// An event to append.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct NewEvent {
    /// What happened: 1 to 128 bytes.
    pub kind: String,
    /// Who did it: 1 to 256 bytes.
    pub actor: String,
    /// What it is about: 1 to 256 bytes, where there is something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// The details: any JSON, nested at most 100 deep; null where there is none.
    #[serde(default)]
    pub payload: Json,
    /// Under which key it is appended once: 1 to 256 bytes. Keys that rise with time (`UUIDv7`, ULID) cost a tenth of
    /// random ones, see the index on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idem_key: Option<String>,
    /// In which run it happened: 1 to 256 bytes, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// When it happened, where that is not now. Not part of what an idempotency key stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts: Option<Timestamp>,
    /// On the first event of a batch whose keys were derived from one: that one.
    #[serde(skip)]
    pub derived: Option<DerivedKey>,
}
leasehold_types::only_as_object!(NewEvent + Serialize);

/// A key that a caller gave to a whole batch. It stands for the batch: repeated with more events, fewer, or one that is no batch, it is a
/// conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedKey {
    key: String,
    /// How many events the batch has; `None`: it is one event and no list.
    len: Option<usize>,
}

impl DerivedKey {
    /// Names every event by `key`: the one event by the key itself, those of a list by `<key>#0`, `<key>#1` and so on.
    pub fn name_each(key: &str, batch: &mut [NewEvent], is_list: bool) {
        let len = is_list.then_some(batch.len());
        for (index, event) in batch.iter_mut().enumerate() {
            event.idem_key = Some(if is_list { Self::of_place(key, index) } else { key.to_owned() });
        }
        if let Some(first) = batch.first_mut() {
            first.derived = Some(Self { key: key.to_owned(), len });
        }
    }

    /// The keys that are known where this one was given to something else.
    pub(crate) fn of_others(&self) -> Vec<String> {
        match self.len {
            Some(len) => vec![self.key.clone(), Self::of_place(&self.key, len)],
            None => vec![Self::of_place(&self.key, 0)],
        }
    }

    /// The key itself.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    fn of_place(key: &str, place: usize) -> String {
        format!("{key}#{place}")
    }
}

impl NewEvent {
    /// An event of this kind by this actor.
    #[must_use]
    pub fn new(kind: impl Into<String>, actor: impl Into<String>) -> Self {
        Self { kind: kind.into(), actor: actor.into(), ..Self::default() }
    }

    /// The same with this payload.
    #[must_use]
    pub fn with_payload(self, payload: Json) -> Self {
        Self { payload, ..self }
    }

    /// The same under this idempotency key.
    #[must_use]
    pub fn with_idem_key(self, key: impl Into<String>) -> Self {
        Self { idem_key: Some(key.into()), ..self }
    }

    /// The batch in a JSON text that is either one event or a list of them. Of a list that has more than `events_max` one more than that is
    /// kept, so that [`check_batch`](Self::check_batch) refuses it.
    pub fn batch_from_json(body: &[u8], events_max: usize) -> Result<Vec<Self>, serde_json::Error> {
        // By the first byte and not by trying, so that an error names the field that is wrong.
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[') => {
                let mut json = serde_json::Deserializer::from_slice(body);
                let events = First::beyond(events_max).deserialize(&mut json)?;
                json.end().map(|()| events)
            }
            _ => serde_json::from_slice(body).map(|event| vec![event]),
        }
    }

    /// Checks a batch as appending it would, so that a service can refuse it before it opens, or creates, a tenant for it.
    pub fn check_batch(batch: &[Self], limits: &Limits) -> Result<(), LedgerError> {
        check(batch, limits)
    }

    fn bytes(&self) -> usize {
        let text = |field: &Option<String>| field.as_ref().map_or(0, String::len);
        self.kind.len()
            + self.actor.len()
            + self.payload.as_str().len()
            + text(&self.subject_id)
            + text(&self.idem_key)
            + text(&self.run_id)
    }

    /// What an idempotency key stands for: SHA-256 over kind, actor, subject, run and the payload's canonical form,
    /// each framed by its length so that no two events share an input.
    pub(crate) fn digest(&self) -> Result<[u8; 32], serde_json::Error> {
        let mut payload = Vec::with_capacity(self.payload.as_str().len());
        self.payload.write_canonical(&mut payload)?;
        let mut digest = Sha256::new_with_prefix(b"leasehold event v1\0");
        let fields = [
            Some(self.kind.as_bytes()),
            Some(self.actor.as_bytes()),
            self.subject_id.as_deref().map(str::as_bytes),
            self.run_id.as_deref().map(str::as_bytes),
            Some(&payload),
        ];
        for field in fields {
            // Length 2^64 - 1 marks an absent field; nothing present is that long.
            digest.update(field.map_or(u64::MAX, |bytes| bytes.len() as u64).to_be_bytes());
            digest.update(field.unwrap_or_default());
        }
        Ok(digest.finalize().into())
    }
}

/// Checks a batch before anything is executed.
pub(crate) fn check(batch: &[NewEvent], limits: &Limits) -> Result<(), LedgerError> {
    if batch.is_empty() {
        return Err(LedgerError::InvalidArgument { what: "the batch", rule: "must have an event" });
    }
    if batch.len() > limits.batch_events_max {
        return Err(LedgerError::TooLarge { what: "batch events", limit: limits.batch_events_max as u64 });
    }
    let mut bytes = 0;
    for (index, event) in batch.iter().enumerate() {
        if event.bytes() > limits.event_bytes_max {
            return Err(LedgerError::TooLarge { what: "event bytes", limit: limits.event_bytes_max as u64 });
        }
        bytes += event.bytes();
        text(index, "kind", Some(&event.kind), KIND_BYTES_MAX, "must have 1 to 128 bytes and no NUL")?;
        for (field, value) in [
            ("actor", Some(&event.actor)),
            ("subject_id", event.subject_id.as_ref()),
            ("idem_key", event.idem_key.as_ref()),
            ("run_id", event.run_id.as_ref()),
        ] {
            text(index, field, value, TEXT_BYTES_MAX, "must have 1 to 256 bytes and no NUL")?;
        }
        if !event.payload.is_shallow() {
            let rule = "must be nested at most 100 deep";
            return Err(LedgerError::InvalidEvent { index, field: "payload", rule });
        }
        if !event.payload.is_text() {
            let rule = "must have no half of a surrogate pair in its texts";
            return Err(LedgerError::InvalidEvent { index, field: "payload", rule });
        }
    }
    if bytes > limits.batch_bytes_max {
        return Err(LedgerError::TooLarge { what: "batch bytes", limit: limits.batch_bytes_max as u64 });
    }
    Ok(())
}

fn text(
    index: usize,
    field: &'static str,
    value: Option<&String>,
    bytes_max: usize,
    rule: &'static str,
) -> Result<(), LedgerError> {
    let good = value.is_none_or(|text| (1..=bytes_max).contains(&text.len()) && !text.contains('\0'));
    good.then_some(()).ok_or(LedgerError::InvalidEvent { index, field, rule })
}

/// Where an appended event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Appended {
    /// Its position; that of the first event of its key when it is a duplicate.
    pub position: Position,
    /// Whether its idempotency key was known with the same content, so that nothing was appended.
    pub duplicate: bool,
}

/// An event as it was appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Where it stands.
    pub position: Position,
    /// When it happened, by its caller or by the clock of the replica that appended it.
    pub ts: Timestamp,
    /// Who did it.
    pub actor: String,
    /// What happened.
    pub kind: String,
    /// What it is about.
    pub subject_id: Option<String>,
    /// The details, as they came.
    pub payload: Json,
    /// The key under which it was appended.
    pub idem_key: Option<String>,
    /// In which run it happened.
    pub run_id: Option<String>,
}

/// Which events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// Only those after this position; `None` from the first.
    pub after: Option<Position>,
    /// Only those of this kind.
    pub kind: Option<String>,
    /// Only those about this subject.
    pub subject_id: Option<String>,
    /// How many at most, from 1 to [`Limits::rows_max`].
    pub limit: usize,
}

impl Default for EventQuery {
    /// The first 100 events.
    fn default() -> Self {
        Self { after: None, kind: None, subject_id: None, limit: 100 }
    }
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The position up to which this page looked: read on after it. It moves on past events that the query does not
    /// want, so a page may be empty and still have a `next` and more behind it. `None` only where nothing was ever
    /// appended.
    pub next: Option<Position>,
    /// Whether there was more behind `next` when this page was read.
    pub has_more: bool,
    /// What the events hold of the process's memory.
    #[serde(skip)]
    pub held: Held,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(payload: &str) -> NewEvent {
        NewEvent::new("k", "a").with_payload(Json::parse(payload).unwrap())
    }

    #[test]
    fn the_digest_is_pinned_and_is_over_the_content() {
        let base = event("{\"a\":1,\"b\":2}");
        assert_eq!(
            hex::encode(base.digest().unwrap()),
            "6e919577ef28b5a019db80db9cb5819167b39a9fb54c6262296ea8506fa54ec9"
        );
        assert_eq!(event("{ \"b\":2, \"a\":1 }").digest().unwrap(), base.digest().unwrap());
        let at = NewEvent { ts: Some(Timestamp::from_millis(1)), ..base.clone() };
        assert_eq!(at.digest().unwrap(), base.digest().unwrap(), "the time is not content");
        for other in [
            event("{\"a\":1,\"b\":3}"),
            NewEvent { kind: "ka".into(), actor: String::new(), ..base.clone() },
            NewEvent { subject_id: Some("s".into()), ..base.clone() },
            NewEvent { run_id: Some("s".into()), ..base.clone() },
        ] {
            assert_ne!(other.digest().unwrap(), base.digest().unwrap(), "{other:?}");
        }
    }

    #[test]
    fn a_body_is_one_event_or_a_list() {
        let one = br#" {"kind":"k","actor":"a","payload":{"n":1.00}} "#;
        let events = NewEvent::batch_from_json(one, 10).unwrap();
        assert_eq!((events.len(), events[0].payload.as_str()), (1, "{\"n\":1.00}"));
        assert_eq!(
            NewEvent::batch_from_json(br#"[{"kind":"k","actor":"a"}]"#, 10).unwrap()[0],
            NewEvent::new("k", "a")
        );
        for body in [
            "",
            "7",
            "{\"kind\":\"k\"}",
            "{\"kind\":\"k\",\"actor\":\"a\",\"other\":1}",
            "[1]",
            "{\"kind\":\"k\",\"actor\":\"a\",\"payload\":{]}",
        ] {
            assert!(NewEvent::batch_from_json(body.as_bytes(), 10).is_err(), "{body}");
        }
    }
}
