//! The schema's versions: every file of `sql/`, in one transaction under one lock.
//!
//! The library decides what is to be applied and keeps the history; its own drivers would open a transaction per step, between which
//! another replica's may come. So it is handed one transaction that is already under way, whose search path names our schema.

use std::time::Duration;

use async_trait::async_trait;
use refinery_core::{
    AsyncMigrate, Migration as Step, Runner,
    traits::r#async::{AsyncQuery, AsyncTransaction},
};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio_postgres::{Client, Error, Row, Transaction, types::Type};

use super::{
    connections::{self, within},
    failure,
    options::{PostgresOptions, misconfigured},
};
use crate::LeaseError;

/// The migrations, by file name. A file that was released is never changed again: its digest is in the history.
const MIGRATIONS: &[(&str, &str)] = &[
    ("V1__lease", include_str!("../../../../sql/V1__lease.sql")),
    ("V2__pause", include_str!("../../../../sql/V2__pause.sql")),
    ("V3__token", include_str!("../../../../sql/V3__token.sql")),
];
/// The version that this build knows and needs.
pub(super) const VERSION: u32 = 3;
const HISTORY: &str = "schema_history";
/// How long a replica waits for another's migration.
const LOCK_LIMIT: &str = "60s";
/// How long a migration may take, waiting included.
const LIMIT: Duration = Duration::from_secs(300);
const ACTION: &str = "migrate the schema";

/// What a migration did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The version that was found; 0 where there were no tables.
    pub from: u32,
    /// The version that this build needs.
    pub to: u32,
    /// The steps between the two, by their names: none, where nothing was left to do.
    pub applied: Vec<String>,
}

/// How a migration ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Commit,
    /// It is done, so that everything that stands in its way is found, and then taken back.
    TakeBack,
}

/// Brings the schema to [`VERSION`] and answers what was applied. Makes the schema where there is none. A role that may only use the
/// tables can call it on a schema that is up to date.
pub(super) async fn migrate(options: &PostgresOptions, ending: Ending) -> Result<Migration, LeaseError> {
    let mut connection = connections::alone(options, ACTION).await?;
    let client: &mut Client = &mut connection;
    let work = migrate_by(client, &options.schema, ending);
    within(LIMIT, work)
        .await
        .unwrap_or_else(|| Err(LeaseError::Timeout { action: ACTION.into(), limit: LIMIT }))
}

async fn migrate_by(client: &mut Client, schema: &str, ending: Ending) -> Result<Migration, LeaseError> {
    let mut steps = Steps(client.transaction().await.map_err(|error| failed(&error))?);
    let applied = run(&mut steps, schema).await;
    // Awaited either way: when this returns, nobody else waits for the locks any more.
    let ended = match (&applied, ending) {
        (Ok(_), Ending::Commit) => steps.0.commit().await,
        _ => steps.0.rollback().await,
    };
    match (applied, ended) {
        (Ok(applied), Ok(())) => Ok(applied),
        (Ok(_), Err(error)) => Err(failed(&error)),
        (Err(error), _) => Err(error),
    }
}

async fn run(steps: &mut Steps<'_>, schema: &str) -> Result<Migration, LeaseError> {
    prepare(&steps.0, schema).await.map_err(|error| failed(&error))?;
    let history = AsyncMigrate::get_applied_migrations(steps, HISTORY).await.map_err(|e| refused(&e))?;
    let from = history.last().map_or(0, |last| u32::try_from(last.version()).unwrap_or(0));
    if from > VERSION {
        return Err(LeaseError::FormatTooNew { found: from, known: VERSION });
    }
    let migrations: Result<Vec<Step>, _> =
        MIGRATIONS.iter().map(|(name, text)| Step::unapplied(name, text)).collect();
    let mut runner = Runner::new(&migrations.map_err(|error| refused(&error))?);
    runner.set_migration_table_name(HISTORY);
    let report = runner.run_async(steps).await.map_err(|error| refused(&error))?;
    let applied = report.applied_migrations().iter().map(ToString::to_string).collect();
    Ok(Migration { from, to: VERSION, applied })
}

/// Waits for its turn, then makes the schema and the history where they are missing. Asked first: `IF NOT EXISTS` would need the right to make them even where
/// they are there.
async fn prepare(change: &Transaction<'_>, schema: &str) -> Result<(), Error> {
    change
        .query_typed(
            "SELECT set_config('lock_timeout', $1, true), set_config('search_path', $2, true)",
            &[(&LOCK_LIMIT, Type::TEXT), (&format!("\"{schema}\""), Type::TEXT)],
        )
        .await?;
    // Let go with the transaction: a pooler may give the next one another server connection.
    change
        .query_typed(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
            &[(&format!("leasehold migrations of {schema}"), Type::TEXT)],
        )
        .await?;
    let there = change
        .query_typed_one(
            "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
            &[(&schema, Type::TEXT)],
        )
        .await?;
    if !there.try_get::<_, bool>(0)? {
        change.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    let there = change
        .query_typed_one(
            "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                             WHERE n.nspname = $1 AND c.relname = $2)",
            &[(&schema, Type::TEXT), (&HISTORY, Type::TEXT)],
        )
        .await?;
    if !there.try_get::<_, bool>(0)? {
        // The columns are the library's.
        change
            .batch_execute(&format!(
                "CREATE TABLE {HISTORY} (
                     version int4 PRIMARY KEY, name varchar(255), applied_on varchar(255), checksum varchar(255))"
            ))
            .await?;
    }
    Ok(())
}

/// The one transaction in which all steps run. It is committed by who opened it.
struct Steps<'a>(Transaction<'a>);

#[async_trait]
impl AsyncTransaction for Steps<'_> {
    type Error = Error;

    async fn execute<'a, T: Iterator<Item = &'a str> + Send>(&mut self, queries: T) -> Result<usize, Error> {
        let mut count = 0;
        for query in queries {
            self.0.batch_execute(query).await?;
            count += 1;
        }
        Ok(count)
    }
}

#[async_trait]
impl AsyncQuery<Vec<Step>> for Steps<'_> {
    async fn query(&mut self, query: &str) -> Result<Vec<Step>, Error> {
        self.0.query_typed(query, &[]).await?.iter().map(applied).collect()
    }
}

impl AsyncMigrate for Steps<'_> {
    /// Nothing: `prepare` made it.
    fn assert_migrations_table_query(_: &str) -> String {
        String::new()
    }
}

/// A row of the history. Its digest and time are texts that the library wrote; where they are none, the row is taken for another
/// migration's, which the library refuses by name.
fn applied(row: &Row) -> Result<Step, Error> {
    let (when, digest): (&str, &str) = (row.try_get(2)?, row.try_get(3)?);
    let when = OffsetDateTime::parse(when, &Rfc3339).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    Ok(Step::applied(row.try_get(0)?, row.try_get(1)?, when, digest.parse().unwrap_or(0)))
}

fn failed(error: &Error) -> LeaseError {
    failure::of_statement(ACTION, error, LIMIT)
}

/// The library's error: the database's own where it is one.
fn refused(error: &refinery_core::Error) -> LeaseError {
    match error.kind() {
        refinery_core::error::Kind::Connection(_, source) => match source.downcast_ref::<Error>() {
            Some(error) => failed(error),
            None => LeaseError::Unavailable { action: ACTION.into(), detail: source.to_string() },
        },
        other => misconfigured(&format!("its history is not this program's: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_migration_is_the_version() {
        let last = MIGRATIONS.last().map(|(name, text)| Step::unapplied(name, text).unwrap());
        assert_eq!(last.unwrap().version(), VERSION.cast_signed());
        assert_eq!(MIGRATIONS.len(), VERSION as usize, "no version is left out");
    }

    /// What databases that were migrated by it have in their history.
    #[test]
    fn a_released_migration_is_never_changed() {
        let released = [("V1__lease", V1_DIGEST), ("V2__pause", V2_DIGEST), ("V3__token", V3_DIGEST)];
        for ((name, text), (released, digest)) in MIGRATIONS.iter().zip(released) {
            assert_eq!(*name, released);
            assert_eq!(Step::unapplied(name, text).unwrap().checksum(), digest, "{name}");
        }
    }

    const V1_DIGEST: u64 = 13_176_374_592_099_109_459;
    const V2_DIGEST: u64 = 9_515_172_016_296_654_557;
    const V3_DIGEST: u64 = 10_799_565_608_105_857_681;
}
