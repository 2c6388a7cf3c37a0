//! Bodies that the ledger's own types read and write, described for the OpenAPI document: the ledger does not know of HTTP.

use utoipa::ToSchema;

/// An event to append.
#[derive(ToSchema)]
#[schema(as = NewEvent)]
#[expect(dead_code, reason = "the body as the OpenAPI document shows it; the ledger's own type reads it")]
pub(crate) struct NewEventBody {
    /// What happened: 1 to 128 bytes.
    #[schema(min_length = 1, max_length = 128, example = "note.added")]
    kind: String,
    /// Who did it: 1 to 256 bytes.
    #[schema(min_length = 1, max_length = 256, example = "ada")]
    actor: String,
    /// What it is about: 1 to 256 bytes.
    #[schema(min_length = 1, max_length = 256)]
    subject_id: Option<String>,
    /// The details: any JSON, nested at most 100 deep.
    #[schema(value_type = Option<Value>)]
    payload: Option<serde_json::Value>,
    /// The key under which it is appended once: 1 to 256 bytes; instead of the header.
    #[schema(min_length = 1, max_length = 256)]
    idem_key: Option<String>,
    /// In which run it happened: 1 to 256 bytes.
    #[schema(min_length = 1, max_length = 256)]
    run_id: Option<String>,
    /// When it happened, where that is not now (RFC 3339).
    #[schema(format = DateTime)]
    ts: Option<String>,
}

/// One event, or a list of them that is appended whole or not at all.
#[derive(ToSchema)]
#[schema(as = NewEvents)]
#[expect(dead_code, reason = "the body as the OpenAPI document shows it")]
#[serde(untagged)]
pub(crate) enum NewEventsBody {
    /// One event.
    One(NewEventBody),
    /// An atomic batch.
    Batch(Vec<NewEventBody>),
}

/// Where an event stands.
#[derive(ToSchema)]
#[schema(as = Appended)]
#[expect(dead_code, reason = "the answer as the OpenAPI document shows it; the ledger's own type writes it")]
pub(crate) struct AppendedBody {
    /// Its position, `<epoch>-<seq>`.
    #[schema(example = "7-42")]
    position: String,
    /// Whether its idempotency key was known with the same content, so that nothing was appended.
    duplicate: bool,
}

/// One answer, or a list of them in the order of the batch.
#[derive(ToSchema)]
#[schema(as = AppendedEvents)]
#[expect(dead_code, reason = "the answer as the OpenAPI document shows it")]
#[serde(untagged)]
pub(crate) enum AppendedEventsBody {
    /// Of one event.
    One(AppendedBody),
    /// Of a batch.
    Batch(Vec<AppendedBody>),
}

/// An event as it was appended.
#[derive(ToSchema)]
#[schema(as = Event)]
#[expect(dead_code, reason = "the answer as the OpenAPI document shows it; the ledger's own type writes it")]
pub(crate) struct EventBody {
    /// Where it stands, `<epoch>-<seq>`.
    #[schema(example = "7-42")]
    position: String,
    /// When it happened.
    #[schema(format = DateTime)]
    ts: String,
    /// Who did it.
    actor: String,
    /// What happened.
    kind: String,
    /// What it is about.
    #[schema(required)]
    subject_id: Option<String>,
    /// The details, as they came.
    #[schema(value_type = Value)]
    payload: serde_json::Value,
    /// The key under which it was appended.
    #[schema(required)]
    idem_key: Option<String>,
    /// In which run it happened.
    #[schema(required)]
    run_id: Option<String>,
}

/// A page of events.
#[derive(ToSchema)]
#[schema(as = EventPage)]
#[expect(dead_code, reason = "the answer as the OpenAPI document shows it; the ledger's own type writes it")]
pub(crate) struct EventPageBody {
    /// The events, in order.
    events: Vec<EventBody>,
    /// What `after` has to be for the next page; null only where nothing was ever appended.
    #[schema(required, example = "7-42")]
    next: Option<String>,
    /// Whether there was more when this page was read.
    has_more: bool,
}

/// A result.
#[derive(ToSchema)]
#[schema(as = Rows)]
#[expect(dead_code, reason = "the answer as the OpenAPI document shows it; the ledger's own type writes it")]
pub(crate) struct RowsBody {
    /// The columns' names, in order.
    columns: Vec<String>,
    /// The rows. Never cut short: a result past its bound is 413 `too_large`.
    #[schema(value_type = Vec<Vec<Value>>)]
    rows: Vec<Vec<serde_json::Value>>,
}

/// What one statement did.
#[derive(ToSchema)]
#[schema(as = Executed)]
#[expect(dead_code, reason = "the answer as the OpenAPI document shows it; the ledger's own type writes it")]
pub(crate) struct ExecutedBody {
    /// Rows that it inserted, updated or deleted.
    rows_affected: u64,
    /// The rowid of the last row that it inserted.
    #[schema(required)]
    last_insert_rowid: Option<i64>,
    /// The columns' names, where it answers rows.
    columns: Vec<String>,
    /// The rows that it answered (`RETURNING`, `SELECT`).
    #[schema(value_type = Vec<Vec<Value>>)]
    rows: Vec<Vec<serde_json::Value>>,
}

/// What a transaction did.
#[derive(ToSchema)]
#[schema(as = ExecuteAnswer)]
#[expect(dead_code, reason = "the answer as the OpenAPI document shows it; the ledger's own type writes it")]
pub(crate) struct ExecuteAnswerBody {
    /// One for each statement, in order.
    results: Vec<ExecutedBody>,
    /// Whether this is the kept answer of an earlier request with the same key, and nothing was executed now.
    duplicate: bool,
}
