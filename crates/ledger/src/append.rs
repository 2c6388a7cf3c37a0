//! Appending inside a transaction that is already open.

use leasehold_types::{Epoch, Position, TenureId, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use crate::{Appended, DerivedKey, LedgerError, NewEvent, event, history, session::Session};

/// The end of a ledger, as its writer knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// The last event, or (own epoch, 0) where there is none.
    pub(crate) last: Position,
    /// Whether this tenure has its row, which its first event brings.
    pub(crate) recorded: bool,
}

/// Whose events these are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Author {
    pub(crate) epoch: Epoch,
    pub(crate) tenure: TenureId,
}

/// How a batch that fails is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undo {
    /// By itself: the transaction goes on.
    Batch,
    /// With the transaction, which the caller rolls back.
    Transaction,
}

/// Appends a batch: all of it or nothing.
pub(crate) fn append(
    session: &Session<'_>,
    author: Author,
    tail: &mut Tail,
    batch: &[NewEvent],
    now: Timestamp,
    undo: Undo,
) -> Result<Vec<Appended>, LedgerError> {
    event::check(batch, session.limits)?;
    let _ours = session.control.ours();
    // A single insert is atomic as it is; most groups are one event of a tenure that has its row.
    let nested = undo == Undo::Batch && (batch.len() > 1 || !tail.recorded);
    let run = |sql: &str| {
        session
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map_err(|error| session.explain(error))
    };
    if nested {
        run("SAVEPOINT leasehold_batch")?;
    }
    let mut grown = *tail;
    let appended = insert_all(session, author, &mut grown, batch, now);
    if nested {
        if appended.is_err() && !session.connection.is_autocommit() {
            run("ROLLBACK TO leasehold_batch")?;
        }
        if !session.connection.is_autocommit() {
            run("RELEASE leasehold_batch")?;
        }
    }
    if appended.is_ok() {
        *tail = grown;
    }
    appended
}

fn insert_all(
    session: &Session<'_>,
    author: Author,
    tail: &mut Tail,
    batch: &[NewEvent],
    now: Timestamp,
) -> Result<Vec<Appended>, LedgerError> {
    let derived = batch.first().and_then(|first| first.derived.as_ref());
    if let Some(derived) = derived {
        for other in derived.of_others() {
            if let Some((first, _)) = known(session, author, &other)? {
                return Err(mismatch(derived, first));
            }
        }
    }
    let mut appended = Vec::with_capacity(batch.len());
    for (index, event) in batch.iter().enumerate() {
        let digest = match &event.idem_key {
            None => None,
            Some(_) => Some(event.digest().map_err(|_| LedgerError::InvalidEvent {
                index,
                field: "payload",
                rule: "must be JSON",
            })?),
        };
        if let (Some(key), Some(digest)) = (&event.idem_key, &digest)
            && let Some(first) = find(session, author, key, digest)?
        {
            appended.push(Appended { position: first, duplicate: true });
            continue;
        }
        let position = Position { epoch: author.epoch, seq: tail.last.seq + 1 };
        if !tail.recorded {
            record(session, author, position.seq).map_err(|error| session.explain(error))?;
            tail.recorded = true;
        }
        insert(session, position, event, digest.as_ref(), now).map_err(|error| session.explain(error))?;
        tail.last = position;
        appended.push(Appended { position, duplicate: false });
    }
    // A batch was appended whole, or not at all.
    let first = appended.iter().find(|one| one.duplicate).map(|one| one.position);
    if let (Some(derived), Some(first)) = (derived, first)
        && appended.iter().any(|one| !one.duplicate)
    {
        return Err(mismatch(derived, first));
    }
    Ok(appended)
}

fn mismatch(derived: &DerivedKey, first: Position) -> LedgerError {
    LedgerError::IdempotencyMismatch { key: derived.key().to_owned(), first: Some(first) }
}

/// Where the event of this key stands, if there is one and it is the same.
fn find(
    session: &Session<'_>,
    author: Author,
    key: &str,
    digest: &[u8; 32],
) -> Result<Option<Position>, LedgerError> {
    match known(session, author, key)? {
        Some((first, Some(found))) if found.as_slice() == digest.as_slice() => Ok(Some(first)),
        Some((first, _)) => Err(LedgerError::IdempotencyMismatch { key: key.to_owned(), first: Some(first) }),
        None => Ok(None),
    }
}

/// Where an event stands, and the digest of what its key stands for.
type Known = (Position, Option<Vec<u8>>);

/// The event of this key.
fn known(session: &Session<'_>, author: Author, key: &str) -> Result<Option<Known>, LedgerError> {
    let found = session
        .connection
        .prepare_cached("SELECT seq, idem_digest FROM main.events WHERE idem_key = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([key], |row| Ok((history::seq(row, 0)?, row.get::<_, Option<Vec<u8>>>(1)?)))
                .optional()
        })
        .map_err(|error| session.explain(error))?;
    let Some((seq, digest)) = found else { return Ok(None) };
    let epoch = history::epoch_of(session, seq)?.unwrap_or(author.epoch);
    Ok(Some((Position { epoch, seq }, digest)))
}

fn record(session: &Session<'_>, author: Author, first_seq: u64) -> rusqlite::Result<()> {
    session
        .connection
        .prepare_cached(
            "INSERT INTO main.leasehold_tenures (epoch, first_seq, tenure_id) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![author.epoch.as_i64(), history::as_i64(first_seq), author.tenure.to_string()])
        .map(drop)
}

fn insert(
    session: &Session<'_>,
    position: Position,
    event: &NewEvent,
    digest: Option<&[u8; 32]>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    session
        .connection
        .prepare_cached(
            "INSERT INTO main.events (seq, ts, actor, kind, subject_id, payload, idem_key, idem_digest, run_id) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            history::as_i64(position.seq),
            event.ts.unwrap_or(now).as_millis(),
            event.actor,
            event.kind,
            event.subject_id,
            event.payload.as_str(),
            event.idem_key,
            digest.map(<[u8; 32]>::as_slice),
            event.run_id,
        ])
        .map(drop)
}
