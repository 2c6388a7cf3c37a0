//! `execute`: statements in one transaction, once per idempotency key.

use rusqlite::{OptionalExtension as _, params};

use crate::{
    ExecuteAnswer, Executed, Held, IdempotencyKey, LedgerError, Statement, View,
    event::TEXT_BYTES_MAX,
    session::{Budget, Session},
};

/// How many answers are kept. The oldest goes when a new one comes.
const ANSWERS_KEPT: i64 = 100_000;

/// Runs the statements of one call in the view's transaction, which the caller rolls back when this fails.
pub(crate) fn execute(
    view: &View<'_>,
    statements: &[Statement],
    idempotency: Option<&IdempotencyKey>,
) -> Result<ExecuteAnswer, LedgerError> {
    let session = view.session();
    check(session, statements, idempotency)?;
    view.begin_call()?;
    if let Some(key) = idempotency
        && let Some(results) = kept(session, key)?
    {
        return Ok(ExecuteAnswer { results, duplicate: true, held: Held::default() });
    }
    // One budget and one clock for the whole call.
    let mut budget = Budget::new(session.limits);
    let results = statements
        .iter()
        .map(|statement| {
            session.check_transaction()?;
            view.execute_within(&statement.sql, &statement.params, &mut budget)
        })
        .collect::<Result<Vec<Executed>, LedgerError>>()?;
    if let Some(key) = idempotency {
        keep(session, key, &results)?;
    }
    Ok(ExecuteAnswer { results, duplicate: false, held: budget.into_held() })
}

fn check(
    session: &Session<'_>,
    statements: &[Statement],
    idempotency: Option<&IdempotencyKey>,
) -> Result<(), LedgerError> {
    if statements.is_empty() {
        return Err(LedgerError::InvalidArgument { what: "the statements", rule: "must be at least one" });
    }
    if statements.len() > session.limits.statements_max {
        return Err(LedgerError::TooLarge {
            what: "statements",
            limit: session.limits.statements_max as u64,
        });
    }
    let good = idempotency.is_none_or(|key| (1..=TEXT_BYTES_MAX).contains(&key.key.len()));
    let rule = "must have 1 to 256 bytes";
    good.then_some(()).ok_or(LedgerError::InvalidArgument { what: "the idempotency key", rule })
}

fn kept(session: &Session<'_>, key: &IdempotencyKey) -> Result<Option<Vec<Executed>>, LedgerError> {
    let _ours = session.control.ours();
    let found = session
        .connection
        .prepare_cached("SELECT digest, answer FROM main.leasehold_answers WHERE idem_key = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([&key.key], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?)))
                .optional()
        })
        .map_err(|error| session.explain(error))?;
    let Some((digest, answer)) = found else { return Ok(None) };
    if digest != key.digest {
        return Err(LedgerError::IdempotencyMismatch { key: key.key.clone(), first: None });
    }
    serde_json::from_str(&answer).map(Some).map_err(|error| LedgerError::Damaged {
        path: session.path.to_owned(),
        detail: format!("the answer kept under {:?}: {error}", key.key),
    })
}

fn keep(session: &Session<'_>, key: &IdempotencyKey, results: &[Executed]) -> Result<(), LedgerError> {
    let limit = session.limits.kept_answer_bytes_max;
    let too_large =
        LedgerError::TooLarge { what: "bytes of an answer under an idempotency key", limit: limit as u64 };
    let answer = serde_json::to_string(results).map_err(|_| too_large.clone())?;
    if answer.len() > limit {
        return Err(too_large);
    }
    session.check_transaction()?;
    let _ours = session.control.ours();
    let insert = || -> rusqlite::Result<()> {
        let id = session
            .connection
            .prepare_cached(
                "INSERT INTO main.leasehold_answers (idem_key, digest, answer) VALUES (?1, ?2, ?3)",
            )?
            .insert(params![key.key, key.digest.as_slice(), answer])?;
        session
            .connection
            .prepare_cached("DELETE FROM main.leasehold_answers WHERE id <= ?1")?
            .execute([id - ANSWERS_KEPT])?;
        Ok(())
    };
    insert().map_err(|error| session.explain(error))
}
