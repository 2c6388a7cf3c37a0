//! Copying one ledger into another that is empty, within one transaction.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use leasehold_ledger::{EventQuery, Gate, Ledger, LedgerError, NewEvent, OpenGate, Rows, Value, View};
use leasehold_types::Position;

/// Why a ledger was not copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// The target has events or tables.
    #[error("the tenant is not empty")]
    NotEmpty,
    /// The source has something that is not copied.
    #[error("the ledger has the virtual table `{name}`, which cannot be imported")]
    VirtualTable { name: String },
    /// Reading or writing failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// What was copied.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) events: u64,
    pub(crate) tables: Vec<String>,
    pub(crate) position: Position,
}

/// Events, or rows, in memory at a time. Halved while they are too large together.
const CHUNK: usize = 256;

const OBJECTS: &str = "select type, name, sql from sqlite_schema where name not like 'sqlite\\_%' escape '\\' \
    and name not like 'leasehold\\_%' escape '\\' and lower(name) <> 'events' and sql is not null order by rowid";

/// Copies everything of `source` that is a caller's.
pub(crate) fn copy(source: &Ledger, target: &mut View<'_>) -> Result<Copied, CopyError> {
    let gate: Arc<dyn Gate> = Arc::new(OpenGate);
    let source = Source { ledger: source, gate };
    if target.position().seq > 0 || !target.query(OBJECTS, &[])?.rows.is_empty() {
        return Err(CopyError::NotEmpty);
    }
    let events = copy_events(&source, target)?;
    let objects = source.objects()?;
    let tables = source.in_order_of_references(&objects)?;
    for table in &tables {
        target.execute(&table.sql, &[])?;
        copy_rows(&source, target, &table.name)?;
    }
    // After the rows, so that no trigger fires on what already happened.
    for object in objects.iter().filter(|object| object.kind != "table") {
        target.execute(&object.sql, &[])?;
    }
    let tables = tables.into_iter().map(|table| table.name.clone()).collect();
    Ok(Copied { events, tables, position: target.position() })
}

/// A table, index, view or trigger as the source's schema has it.
#[derive(Debug)]
struct Object {
    kind: String,
    name: String,
    sql: String,
}

struct Source<'a> {
    ledger: &'a Ledger,
    gate: Arc<dyn Gate>,
}

impl Source<'_> {
    fn query(&self, sql: &str, params: &[Value]) -> Result<Rows, LedgerError> {
        self.ledger.query(&self.gate, sql, params)
    }

    fn objects(&self) -> Result<Vec<Object>, CopyError> {
        let objects = self.query(OBJECTS, &[])?.rows.into_iter().filter_map(|row| {
            let mut texts = row.into_iter().filter_map(|value| match value {
                Value::Text(text) => Some(text),
                _ => None,
            });
            Some(Object { kind: texts.next()?, name: texts.next()?, sql: texts.next()? })
        });
        let objects: Vec<Object> = objects.collect();
        match objects.iter().find(|object| is_virtual(&object.sql)) {
            Some(object) => Err(CopyError::VirtualTable { name: object.name.clone() }),
            None => Ok(objects),
        }
    }

    /// The tables, each after those that it refers to as far as that goes: foreign keys are checked row by row.
    fn in_order_of_references<'o>(&self, objects: &'o [Object]) -> Result<Vec<&'o Object>, CopyError> {
        let mut waiting: BTreeMap<&str, (&Object, BTreeSet<String>)> = BTreeMap::new();
        for object in objects.iter().filter(|object| object.kind == "table") {
            let keys = self.query(&format!("pragma foreign_key_list({})", quoted(&object.name)), &[])?;
            let referred = keys
                .rows
                .iter()
                .filter_map(|row| match row.get(2) {
                    Some(Value::Text(table)) if !table.eq_ignore_ascii_case(&object.name) => {
                        Some(table.to_lowercase())
                    }
                    _ => None,
                })
                .collect();
            waiting.insert(&object.name, (object, referred));
        }
        let mut ordered = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let names: BTreeSet<String> = waiting.keys().map(|name| name.to_lowercase()).collect();
            let mut ready: Vec<&str> = waiting
                .iter()
                .filter(|(_, (_, referred))| referred.is_disjoint(&names))
                .map(|(name, _)| *name)
                .collect();
            if ready.is_empty() {
                // A circle: whichever comes first, its rows decide whether it can be copied.
                ready.extend(waiting.keys().next().copied());
            }
            ordered
                .extend(ready.into_iter().filter_map(|name| waiting.remove(name)).map(|(object, _)| object));
        }
        Ok(ordered)
    }
}

fn copy_events(source: &Source<'_>, target: &mut View<'_>) -> Result<u64, CopyError> {
    let (mut after, mut chunk, mut events) = (None, CHUNK, 0);
    loop {
        let query = EventQuery { after, limit: chunk, ..EventQuery::default() };
        let page = match source.ledger.events(&source.gate, &query) {
            Err(LedgerError::TooLarge { .. }) if chunk > 1 => {
                chunk /= 2;
                continue;
            }
            page => page?,
        };
        if !page.events.is_empty() {
            let batch: Vec<NewEvent> = page
                .events
                .into_iter()
                .map(|event| NewEvent {
                    kind: event.kind,
                    actor: event.actor,
                    subject_id: event.subject_id,
                    payload: event.payload,
                    idem_key: event.idem_key,
                    run_id: event.run_id,
                    ts: Some(event.ts),
                    derived: None,
                })
                .collect();
            events += target.append(&batch)?.len() as u64;
        }
        after = page.next.or(after);
        if !page.has_more {
            return Ok(events);
        }
    }
}

fn copy_rows(source: &Source<'_>, target: &mut View<'_>, table: &str) -> Result<(), CopyError> {
    // Generated columns are computed anew; their `hidden` is not 0.
    let columns: Vec<String> = source
        .query(&format!("pragma table_xinfo({})", quoted(table)), &[])?
        .rows
        .into_iter()
        .filter_map(|row| match (row.get(1), row.get(6)) {
            (Some(Value::Text(name)), Some(Value::Integer(0))) => Some(quoted(name)),
            _ => None,
        })
        .collect();
    let (names, marks) = (columns.join(", "), vec!["?"; columns.len()].join(", "));
    let read = format!("select {names} from {} limit ? offset ?", quoted(table));
    let write = format!("insert into {} ({names}) values ({marks})", quoted(table));
    let (mut done, mut chunk) = (0_i64, CHUNK);
    loop {
        let bounds = [Value::Integer(i64::try_from(chunk).unwrap_or(i64::MAX)), Value::Integer(done)];
        let rows = match source.query(&read, &bounds) {
            Err(LedgerError::TooLarge { .. }) if chunk > 1 => {
                chunk /= 2;
                continue;
            }
            rows => rows?.rows,
        };
        for row in &rows {
            target.execute(&write, row)?;
        }
        done += i64::try_from(rows.len()).unwrap_or(i64::MAX);
        if rows.len() < chunk {
            return Ok(());
        }
    }
}

fn is_virtual(sql: &str) -> bool {
    let mut words = sql.split_ascii_whitespace();
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("create"))
        && words.next().is_some_and(|word| word.eq_ignore_ascii_case("virtual"))
}

/// A name as SQL takes it literally.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
