//! A look at the database for who has to decide whether it can be used: it is asked, and nothing is left changed in it.

use std::{
    future::Future,
    net::IpAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use deadpool_postgres::ClientWrapper;
use leasehold_types::Clock;
use tokio_postgres::{
    Client, Error, Row,
    config::Host,
    types::{FromSql, Type},
};
use uuid::Uuid;

use super::{
    connections::{self, within},
    failure,
    found::{
        PostgresCommits, PostgresPooling, PostgresRoundTrip, PostgresSchema, PostgresServer, PostgresTls,
    },
    migrations,
    options::{PostgresOptions, TlsMode},
    rows,
    statements::{LIMITS, Statements},
};
use crate::LeaseError;

/// The tables, and what the role that serves needs of each: the grants of `sql/README.md`, by test.
const NEEDED: [(&str, &[&str]); 5] = [
    ("lease", &["SELECT", "INSERT", "UPDATE"]),
    ("replica", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("settings", &["SELECT", "INSERT"]),
    ("token", &["SELECT"]),
    ("schema_history", &["SELECT"]),
];
/// What can be had of a table, in the order of the columns of [`RIGHTS`].
const PRIVILEGES: [&str; 5] = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"];

const SERVER: &str = "
    SELECT current_setting('server_version'), current_setting('server_version_num')::bigint,
           quote_ident(current_user), coalesce(r.rolsuper, false), current_database()::text,
           pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
           current_setting('synchronous_commit'), current_setting('synchronous_standby_names') <> '',
           current_setting('fsync') = 'on',
           current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
               - coalesce(current_setting('reserved_connections', true)::bigint, 0),
           coalesce(r.rolconnlimit, -1)::bigint, coalesce(d.datconnlimit, -1)::bigint,
           (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database)
      FROM (SELECT) AS here LEFT JOIN pg_roles r ON r.rolname = current_user
           LEFT JOIN pg_database d ON d.datname = current_database()";

/// Asked of the catalogue, which everybody may read.
const SCHEMA: &str = "
    SELECT n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
           coalesce(has_schema_privilege(n.oid, 'CREATE'), has_database_privilege(current_database(), 'CREATE')),
           quote_ident($1), quote_ident(current_user)
      FROM (SELECT) AS here LEFT JOIN pg_namespace n ON n.nspname = $1";
const RIGHTS: &str = "
    SELECT c.relname::text, has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
           has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
           has_table_privilege(c.oid, 'TRUNCATE')
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')";

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const SESSION: &str = "SELECT pg_backend_pid()::bigint";
/// How often a connection is looked at before it counts as keeping its session.
const LOOKS: usize = 3;

/// One connection of its own to the database of [`PostgresOptions`], by which it is asked what a [`PostgresLeaseStore`] would find.
///
/// Each call is bounded by the options' limits, and nothing is left changed. Once a call got no answer, later ones fail at once: an
/// answer that is still to come would hold them up.
///
/// [`PostgresLeaseStore`]: super::PostgresLeaseStore
pub struct PostgresInspector {
    options: PostgresOptions,
    connection: ClientWrapper,
    /// Whether a call got no answer.
    is_lost: AtomicBool,
}

impl PostgresInspector {
    /// Connects.
    pub async fn connect(options: &PostgresOptions) -> Result<Self, LeaseError> {
        let connection = connections::alone(options, "connect").await?;
        Ok(Self { options: options.clone(), connection, is_lost: AtomicBool::new(false) })
    }

    /// The server, and what it is set to for our role.
    pub async fn server(&self) -> Result<PostgresServer, LeaseError> {
        let row = self.one("ask for the server's settings", SERVER, &[]).await?;
        let limit = |at| column::<i64>(&row, at).map(|limit| u32::try_from(limit).ok());
        let limits: [Option<u32>; 2] = [limit(11)?, limit(12)?];
        Ok(PostgresServer {
            version: column(&row, 0)?,
            version_number: count(&row, 1)?,
            role: column(&row, 2)?,
            is_superuser: column(&row, 3)?,
            database: column(&row, 4)?,
            is_standby: column(&row, 5)?,
            is_read_only: column(&row, 6)?,
            synchronous_commit: column(&row, 7)?,
            has_synchronous_standby: column(&row, 8)?,
            fsync: column(&row, 9)?,
            connections_max: count(&row, 10)?,
            role_connections_max: limits.into_iter().flatten().min(),
            connections_open: count(&row, 13)?,
        })
    }

    /// Whether TLS is spoken on our way to the server, or to the pooler before it: no server can tell that of a pooler's.
    pub async fn tls(&self) -> Result<PostgresTls, LeaseError> {
        let mode = self.options.resolved_tls_mode()?;
        let is_used = match mode {
            TlsMode::Disable => false,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => true,
            // It is spoken where it is offered; and it is offered where one who insists on it is let in.
            TlsMode::Prefer => {
                let mut insisting = self.options.clone();
                insisting.tls_mode = Some(TlsMode::Require);
                match connections::alone(&insisting, "connect by TLS").await {
                    Ok(_) => true,
                    Err(LeaseError::Unavailable { .. } | LeaseError::Denied { .. }) => false,
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(PostgresTls { mode, is_used, is_local: is_local(&self.options.plan()?.config) })
    }

    /// The schema and its tables.
    pub async fn schema(&self) -> Result<PostgresSchema, LeaseError> {
        let action = "look at the schema";
        let name = self.options.schema.as_str();
        let found = self.one(action, SCHEMA, &[(&name, Type::TEXT)]).await?;
        let tables = self.ask(action, RIGHTS, &[(&name, Type::TEXT)]).await?;
        let (may_use, schema, role): (bool, String, String) =
            (column(&found, 1)?, column(&found, 3)?, column(&found, 4)?);
        let is_there = column(&found, 0)?;
        let mut missing_grants = Vec::new();
        if is_there && !may_use {
            missing_grants.push(format!("GRANT USAGE ON SCHEMA {schema} TO {role};"));
        }
        let mut excess_rights = Vec::new();
        let mut history = None;
        for (table, needed) in NEEDED {
            let row = tables.iter().find(|row| row.try_get::<_, &str>(0).is_ok_and(|name| name == table));
            let Some(row) = row else { continue };
            let mut lacks = Vec::new();
            for (at, privilege) in PRIVILEGES.into_iter().enumerate() {
                match (column::<bool>(row, at + 1)?, needed.contains(&privilege)) {
                    (false, true) => lacks.push(privilege),
                    (true, false) => excess_rights.push(format!("{privilege} on {table}")),
                    _ => {}
                }
            }
            if table == "schema_history" {
                history = Some(lacks.is_empty() && may_use);
            }
            if !lacks.is_empty() {
                missing_grants.push(format!("GRANT {} ON {schema}.{table} TO {role};", lacks.join(", ")));
            }
        }
        let version = match history {
            None => Some(0),
            Some(false) => None,
            Some(true) => {
                let row = self.one(action, Statements::new(name).version.text(), &[]).await?;
                Some(u32::try_from(column::<i32>(&row, 0)?).unwrap_or(0))
            }
        };
        Ok(PostgresSchema {
            name: name.into(),
            is_there,
            version,
            version_needed: migrations::VERSION,
            may_migrate: column(&found, 2)?,
            missing_grants,
            excess_rights,
        })
    }

    /// `count` questions, one after the other, by `clock`.
    pub async fn round_trips(
        &self,
        clock: &dyn Clock,
        count: usize,
    ) -> Result<Vec<PostgresRoundTrip>, LeaseError> {
        let mut trips = Vec::with_capacity(count);
        for _ in 0..count {
            let (began, wall) = (clock.now(), clock.wall());
            let row = self.one("tell the time", CLOCK, &[]).await?;
            let took = clock.now().since(began);
            let half_micros = i64::try_from(took.as_micros() / 2).unwrap_or(i64::MAX);
            let ours = wall.as_millis().saturating_mul(1_000).saturating_add(half_micros);
            trips
                .push(PostgresRoundTrip { took, ahead_micros: column::<i64>(&row, 0)?.saturating_sub(ours) });
        }
        Ok(trips)
    }

    /// `count` commits that wait for the log as a renewal does. Each adds a replica called by `id` and takes it away again before
    /// anybody could see it.
    pub async fn commits(
        &mut self,
        clock: &dyn Clock,
        count: usize,
        id: Uuid,
    ) -> Result<PostgresCommits, LeaseError> {
        let action = "commit";
        self.check_lost(action)?;
        let limit = self.options.statement_limit;
        let client: &mut Client = &mut self.connection;
        let mut took = Vec::with_capacity(count);
        let mut synchronous_commit = String::new();
        for _ in 0..count {
            let committed = within(limit, commit(client, &self.options, clock, id)).await;
            let committed = answered(&self.is_lost, action, limit, committed)?;
            took.push(committed.0);
            synchronous_commit = committed.1;
        }
        Ok(PostgresCommits { took, synchronous_commit })
    }

    /// Whether this connection keeps its session, beside another one of ours that is in a transaction.
    pub async fn pooling(&self) -> Result<PostgresPooling, LeaseError> {
        let action = "look for a pooler";
        self.check_lost(action)?;
        let limit = self.options.statement_limit;
        let mut beside = connections::alone(&self.options, action).await?;
        let beside: &mut Client = &mut beside;
        for _ in 0..LOOKS {
            let before: i64 = column(&self.one(action, SESSION, &[]).await?, 0)?;
            let open = async {
                let transaction = beside.transaction().await?;
                let row = transaction.query_typed_one(SESSION, &[]).await?;
                Ok((transaction, row.try_get::<_, i64>(0)?))
            };
            let opened = within(limit, open).await;
            let (transaction, other) = answered(&AtomicBool::new(false), action, limit, opened)?;
            // Where there is only one session, asking again would wait for the other one's end.
            let is_given_away = other == before;
            let has_another =
                is_given_away || column::<i64>(&self.one(action, SESSION, &[]).await?, 0)? != before;
            let ended = within(limit, transaction.rollback()).await;
            answered(&AtomicBool::new(false), action, limit, ended)?;
            if has_another {
                return Ok(PostgresPooling::ByTransaction);
            }
        }
        Ok(PostgresPooling::NotSeen)
    }

    /// The fingerprint of the derivation key that the store was bound to, if it was bound to one.
    pub async fn derivation_fingerprint(&self) -> Result<Option<String>, LeaseError> {
        let statements = Statements::new(&self.options.schema);
        let rows = self
            .ask(
                "read the derivation key's fingerprint",
                statements.setting.text(),
                &[(&"derivation_key", Type::TEXT)],
            )
            .await?;
        rows.first().map(|row| column(row, 0)).transpose()
    }

    async fn one(
        &self,
        action: &str,
        sql: &str,
        parameters: &[connections::Parameter<'_>],
    ) -> Result<Row, LeaseError> {
        let row = self.ask(action, sql, parameters).await?.into_iter().next();
        row.ok_or_else(|| LeaseError::Unavailable { action: action.into(), detail: "no row came".into() })
    }

    async fn ask(
        &self,
        action: &str,
        sql: &str,
        parameters: &[connections::Parameter<'_>],
    ) -> Result<Vec<Row>, LeaseError> {
        self.check_lost(action)?;
        let limit = self.options.statement_limit;
        let rows = within(limit, self.connection.query_typed(sql, parameters)).await;
        answered(&self.is_lost, action, limit, rows)
    }

    fn check_lost(&self, action: &str) -> Result<(), LeaseError> {
        if !self.is_lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        let detail = "an earlier question on this connection got no answer".into();
        Err(LeaseError::Unavailable { action: action.into(), detail })
    }
}

impl std::fmt::Debug for PostgresInspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresInspector").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What came of a call that was given `limit`; `None`: nothing, in time.
fn answered<T>(
    is_lost: &AtomicBool,
    action: &str,
    limit: Duration,
    answer: Option<Result<T, Error>>,
) -> Result<T, LeaseError> {
    let Some(answer) = answer else {
        is_lost.store(true, Ordering::Relaxed);
        return Err(LeaseError::Timeout { action: action.into(), limit });
    };
    answer.map_err(|error| failure::of_statement(action, &error, limit))
}

/// How long one commit took, and whether it waited for the log.
fn commit<'a>(
    client: &'a mut Client,
    options: &'a PostgresOptions,
    clock: &'a dyn Clock,
    id: Uuid,
) -> impl Future<Output = Result<(Duration, String), Error>> + 'a {
    let replicas = format!("\"{}\".replica", options.schema);
    let insert = format!(
        "{LIMITS}
         INSERT INTO {replicas} (replica_id, instance, draining, open_tenants, seen_at)
         SELECT $2, $3, true, 0, to_timestamp(0) FROM limits"
    );
    let delete = format!("DELETE FROM {replicas} WHERE replica_id = $1 AND instance = $2");
    let lock_limit = format!("{}ms", options.lock_limit.as_millis().max(1));
    // No replica can be called so.
    let name = format!("_doctor_{id}");
    async move {
        let transaction = client.transaction().await?;
        let parameters: [connections::Parameter<'_>; 3] =
            [(&lock_limit, Type::TEXT), (&name, Type::TEXT), (&id, Type::UUID)];
        transaction.query_typed(&insert, &parameters).await?;
        let row = transaction.query_typed_one("SELECT current_setting('synchronous_commit')", &[]).await?;
        transaction.query_typed(&delete, &[(&name, Type::TEXT), (&id, Type::UUID)]).await?;
        let began = clock.now();
        transaction.commit().await?;
        Ok((clock.now().since(began), row.try_get(0)?))
    }
}

fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, LeaseError> {
    rows::column(row, at)
}

/// A number that is never negative.
fn count(row: &Row, at: usize) -> Result<u32, LeaseError> {
    Ok(u32::try_from(column::<i64>(row, at)?).unwrap_or(0))
}

/// Whether no part of the way lies outside the machine.
fn is_local(config: &tokio_postgres::Config) -> bool {
    let is_local_name =
        |name: &str| name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => is_local_name(name),
        Host::Unix(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the document tells an operator to grant.
    #[test]
    fn what_is_needed_is_what_is_documented() {
        let readme = include_str!("../../../../sql/README.md");
        let documented: Vec<&str> =
            readme.lines().filter(|line| line.starts_with("GRANT ") && !line.contains(" SCHEMA ")).collect();
        let needed = NEEDED.map(|(table, privileges)| {
            format!("GRANT {} ON leasehold.{table} TO leasehold_app;", privileges.join(", "))
        });
        assert_eq!(documented, needed);
    }

    #[test]
    fn a_way_is_local_if_all_of_it_is() {
        for (url, expected) in [
            ("host=127.0.0.1", true),
            ("host=localhost", true),
            ("host=/run/postgresql", true),
            ("host=db.internal", false),
            ("host=localhost,db.internal", false),
            ("host=db.internal hostaddr=127.0.0.1", true),
            ("host=localhost hostaddr=192.0.2.1", false),
        ] {
            let plan = PostgresOptions::new(url).plan().unwrap();
            assert_eq!(is_local(&plan.config), expected, "{url}");
        }
    }
}
