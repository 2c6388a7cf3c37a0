//! The server under test, and a schema of each test's own in it.

use std::{
    env, process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use leasehold_lease::{PostgresLeaseStore, PostgresOptions};
use tokio_postgres::{Client, NoTls, types::Type};

/// How a test reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// PgBouncer with `pool_mode = transaction`.
    Pooled,
}

pub(crate) fn url(way: Way) -> String {
    let name = match way {
        Way::Direct => "LEASEHOLD_TEST_POSTGRES",
        Way::Pooled => "LEASEHOLD_TEST_PGBOUNCER",
    };
    env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run `cargo xtask test`, which starts the servers that the suites need")
    })
}

/// A superuser's connection, past any pooler.
pub(crate) async fn admin() -> Client {
    connect(&url(Way::Direct)).await
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A schema that goes with the test.
pub(crate) struct Schema {
    pub(crate) options: PostgresOptions,
    pub(crate) admin: Arc<Client>,
}

impl Schema {
    /// A name of our own, and nothing made yet.
    pub(crate) async fn unmade(way: Way) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let admin = Arc::new(admin().await);
        admin.batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await.unwrap();
        let mut options = PostgresOptions::new(url(way));
        options.schema = name;
        Self { options, admin }
    }

    /// With the tables in it.
    pub(crate) async fn made(way: Way) -> Self {
        let schema = Self::unmade(way).await;
        PostgresLeaseStore::migrate(&schema.options).await.unwrap();
        schema
    }

    pub(crate) fn name(&self) -> &str {
        &self.options.schema
    }

    pub(crate) async fn store(&self) -> PostgresLeaseStore {
        PostgresLeaseStore::connect(self.options.clone()).await.unwrap()
    }

    /// Runs a superuser's statements, `@` standing for the schema.
    pub(crate) async fn run(&self, sql: &str) {
        self.admin.batch_execute(&sql.replace('@', self.name())).await.unwrap();
    }

    /// The one number that a query gives, `@` standing for the schema.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.admin.query_one(&sql.replace('@', self.name()), &[]).await.unwrap().get(0)
    }

    /// How many statements wait for a lock on the schema's leases.
    pub(crate) async fn blocked(&self) -> i64 {
        let sql = "SELECT count(*) FROM pg_stat_activity
                    WHERE wait_event_type = 'Lock' AND query LIKE '%\"@\".lease%'";
        self.number(sql).await
    }

    /// Moves the store's time: all that it remembers is longer ago by `by`.
    pub(crate) fn advance(&self, by: Duration) -> BoxFuture<'static, ()> {
        let (admin, name) = (Arc::clone(&self.admin), self.name().to_owned());
        let by = i64::try_from(by.as_micros()).unwrap();
        Box::pin(async move {
            let lease = format!(
                "UPDATE {name}.lease SET expires_at = expires_at - $1 * interval '1 microsecond',
                        recheck_at = recheck_at - $1 * interval '1 microsecond',
                        forgotten_at = forgotten_at - $1 * interval '1 microsecond'"
            );
            let replica =
                format!("UPDATE {name}.replica SET seen_at = seen_at - $1 * interval '1 microsecond'");
            for sql in [lease, replica] {
                admin.execute_typed(&sql, &[(&by, Type::INT8)]).await.unwrap();
            }
        })
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name());
        // A thread of its own: a destructor cannot wait in the test's runtime.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&url(Way::Direct), NoTls).await?;
                tokio::spawn(connection);
                // A test that failed may have left a transaction open, which this thread must not wait for.
                client.batch_execute("SET lock_timeout = '5s'").await?;
                client.batch_execute(&sql).await
            })
        });
        // What is left behind is in nobody's way: another run drops it before it makes its own.
        let _ = dropping.join();
    }
}
