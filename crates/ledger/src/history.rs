//! Reading events, and telling whether a position is of this history.

use leasehold_types::{Epoch, Position, Timestamp};
use rusqlite::{OptionalExtension as _, Row, params};

use crate::{Event, EventPage, EventQuery, Held, Json, LedgerError, memory::of_text, session::Session};

/// How many events one page looks at when its filters leave most of them out: the bound on its work.
const SCAN_MAX: u64 = 100_000;

/// A sequence number as SQL stores it; every one is within range, since it was read from there or is one more.
pub(crate) fn as_i64(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

pub(crate) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|seq| u64::try_from(seq).unwrap_or(0))
}

fn epoch(number: i64) -> Option<Epoch> {
    u64::try_from(number).ok().and_then(|number| Epoch::new(number).ok())
}

/// The number of the last event; 0 where there is none.
pub(crate) fn last_seq(session: &Session<'_>) -> Result<u64, LedgerError> {
    session
        .connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM main.events")
        .and_then(|mut statement| statement.query_row([], |row| seq(row, 0)))
        .map_err(|error| session.explain(error))
}

/// The last event's position, or (`own`, 0) where there is none.
pub(crate) fn last(session: &Session<'_>, own: Epoch) -> Result<Position, LedgerError> {
    let seq = last_seq(session)?;
    Ok(Position { epoch: epoch_of(session, seq)?.unwrap_or(own), seq })
}

/// Whether this epoch has its row.
pub(crate) fn is_recorded(session: &Session<'_>, own: Epoch) -> Result<bool, LedgerError> {
    session
        .connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM main.leasehold_tenures WHERE epoch = ?1)")
        .and_then(|mut statement| statement.query_row([own.as_i64()], |row| row.get(0)))
        .map_err(|error| session.explain(error))
}

/// In which epoch the event of this number was written; `None` before the first.
pub(crate) fn epoch_of(session: &Session<'_>, seq: u64) -> Result<Option<Epoch>, LedgerError> {
    let number = session
        .connection
        .prepare_cached(
            "SELECT epoch FROM main.leasehold_tenures WHERE first_seq <= ?1 ORDER BY first_seq DESC LIMIT 1",
        )
        .and_then(|mut statement| statement.query_row([as_i64(seq)], |row| row.get(0)).optional())
        .map_err(|error| session.explain(error))?;
    Ok(number.and_then(epoch))
}

/// Refuses a position that this history does not have.
///
/// The epochs that wrote something divide the numbers: each has those from its first to the one before the next
/// epoch's first. So what `asked.epoch` had seen of this history ends where the first later epoch began; a number
/// behind that end was written by `asked.epoch` and lost with its tail. An epoch without a row wrote nothing that
/// lasted, and had seen what the epoch before it left.
pub(crate) fn check(
    session: &Session<'_>,
    own: Epoch,
    asked: Position,
    last_seq: u64,
) -> Result<(), LedgerError> {
    let next_first: Option<u64> = session
        .connection
        .prepare_cached("SELECT min(first_seq) FROM main.leasehold_tenures WHERE epoch > ?1")
        .and_then(|mut statement| {
            statement.query_row([asked.epoch.as_i64()], |row| row.get::<_, Option<i64>>(0))
        })
        .map_err(|error| session.explain(error))?
        .and_then(|first| u64::try_from(first).ok());
    let end = next_first.map_or(last_seq, |first| first.saturating_sub(1));
    if asked.seq <= end {
        return Ok(());
    }
    let epoch = epoch_of(session, end)?.unwrap_or(own);
    Err(LedgerError::HistoryRewound { asked, last_common: Position { epoch, seq: end } })
}

/// The events that a query asks for, bounded in rows, bytes and events looked at.
pub(crate) fn page(session: &Session<'_>, own: Epoch, query: &EventQuery) -> Result<EventPage, LedgerError> {
    if query.limit == 0 {
        return Err(LedgerError::InvalidArgument { what: "the limit", rule: "must be at least 1" });
    }
    if query.limit > session.limits.rows_max {
        return Err(LedgerError::TooLarge {
            what: "events of a page",
            limit: session.limits.rows_max as u64,
        });
    }
    let _ours = session.control.ours();
    let last_seq = last_seq(session)?;
    if let Some(asked) = query.after {
        check(session, own, asked, last_seq)?;
    }
    let from = query.after.map_or(0, |position| position.seq);
    // Nothing above it is looked at, so what is appended meanwhile is the next page's.
    let to = last_seq.min(from.saturating_add(SCAN_MAX));
    let mut held = session.limits.memory.hold();
    let found = select(session, own, query, (from, to), &mut held).map_err(|error| session.explain(error))?;
    if found.is_full && found.events.is_empty() {
        return Err(LedgerError::MemoryShort);
    }

    let (next, has_more) = if found.is_full {
        (found.events.last().map(|event| event.position), true)
    } else if to > 0 && to >= from {
        (Some(Position { epoch: epoch_of(session, to)?.unwrap_or(own), seq: to }), to < last_seq)
    } else {
        (query.after, false)
    };
    Ok(EventPage { events: found.events, next, has_more, held })
}

struct Found {
    events: Vec<Event>,
    /// Whether there was one more than fits, or than there is memory for.
    is_full: bool,
}

fn select(
    session: &Session<'_>,
    own: Epoch,
    query: &EventQuery,
    (from, to): (u64, u64),
    held: &mut Held,
) -> rusqlite::Result<Found> {
    const SELECT: &str = "SELECT seq, ts, actor, kind, subject_id, payload, idem_key, run_id, \
         (SELECT t.epoch FROM main.leasehold_tenures AS t WHERE t.first_seq <= e.seq \
          ORDER BY t.first_seq DESC LIMIT 1) \
         FROM main.events AS e WHERE seq > ?1 AND seq <= ?2";
    let filter = match (&query.kind, &query.subject_id) {
        (None, None) => "",
        (Some(_), None) => " AND kind = ?4",
        (None, Some(_)) => " AND subject_id = ?5",
        (Some(_), Some(_)) => " AND kind = ?4 AND subject_id = ?5",
    };
    let text = format!("{SELECT}{filter} ORDER BY seq LIMIT ?3");
    let mut statement = session.connection.prepare_cached(&text)?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    let all = params![as_i64(from), as_i64(to), limit, query.kind, query.subject_id];
    // A text has as many parameters as its highest number.
    let used = match (&query.kind, &query.subject_id) {
        (_, Some(_)) => 5,
        (Some(_), None) => 4,
        (None, None) => 3,
    };
    let mut rows = statement.query(&all[..used])?;
    let mut found = Found { events: Vec::new(), is_full: false };
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let event = event(row, own)?;
        bytes += event.payload.as_str().len() + event.actor.len() + event.kind.len();
        let over = bytes > session.limits.result_bytes_max && !found.events.is_empty();
        if over || found.events.len() == query.limit || !held.try_grow(cost(&event)) {
            found.is_full = true;
            break;
        }
        found.events.push(event);
    }
    Ok(found)
}

/// Bytes that an event holds as it is and as JSON.
fn cost(event: &Event) -> u64 {
    const FIELDS: u64 = 512;
    let texts = [Some(&event.actor), Some(&event.kind), event.subject_id.as_ref(), event.idem_key.as_ref()];
    let texts = texts.into_iter().flatten().map(|text| of_text(text.as_bytes())).sum::<u64>();
    FIELDS + 2 * event.payload.as_str().len() as u64 + texts
}

fn event(row: &Row<'_>, own: Epoch) -> rusqlite::Result<Event> {
    let payload: String = row.get(5)?;
    let payload = Json::parse(payload).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Event {
        position: Position {
            epoch: row.get::<_, Option<i64>>(8)?.and_then(epoch).unwrap_or(own),
            seq: seq(row, 0)?,
        },
        ts: Timestamp::from_millis(row.get(1)?),
        actor: row.get(2)?,
        kind: row.get(3)?,
        subject_id: row.get(4)?,
        payload,
        idem_key: row.get(6)?,
        run_id: row.get(7)?,
    })
}
