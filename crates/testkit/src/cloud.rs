//! The cloud pair: leases in Postgres, objects in Azure Blob (Azurite).

use std::{env, fmt, sync::Arc, time::Duration};

use leasehold_blob::{AzureCredential, AzureOptions, AzureStore, BlobStore, Secret};
use leasehold_lease::{LeaseStore, PostgresLeaseStore, PostgresOptions, TokioTimer};
use leasehold_types::{Clock as _, Entropy, SystemClock};
use tokio_postgres::NoTls;

use crate::{ManualClock, Pair};

/// The URL of a Postgres superuser, as `cargo xtask test` tells it.
const POSTGRES: &str = "LEASEHOLD_TEST_POSTGRES";
/// An Azurite's connection string, as `cargo xtask test` tells it.
const AZURITE: &str = "LEASEHOLD_TEST_AZURITE";

/// A few replicas in one process: two fleets at a time leave most of a server's connections to other suites.
const POOL_MAX: usize = 4;

/// [`PostgresLeaseStore`] and [`AzureStore`], in a schema and a container of their own, which nobody else sees and which go
/// with the servers.
///
/// Where time is moved by hand it is moved in the database, and nowhere else: the store's sessions find a function of the
/// schema where they look for the server's clock. So nothing runs out because a machine was slow.
pub struct CloudPair {
    leases: Arc<PostgresLeaseStore>,
    blobs: Arc<AzureStore>,
    /// Whoever moves time in the schema; `None` where it is the server's.
    time: Option<HandMovedTime>,
}

impl fmt::Debug for CloudPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudPair").field("leases", &self.leases).finish_non_exhaustive()
    }
}

/// A database session, and the schema whose time it moves.
struct HandMovedTime {
    schema: String,
    session: tokio_postgres::Client,
}

impl CloudPair {
    async fn new(time_by_hand: bool) -> Self {
        let entropy = Arc::new(Entropy::system());
        let name = format!("pair-{}", entropy.uuid());
        let schema = name.replace('-', "_");

        let url = address(POSTGRES);
        let options_for = |url: &str| {
            let mut options = PostgresOptions::new(url);
            options.schema.clone_from(&schema);
            options.pool_max = POOL_MAX;
            options
        };
        PostgresLeaseStore::migrate(&options_for(&url)).await.expect("the lease tables in a new schema");
        let time = if time_by_hand { Some(HandMovedTime::in_schema(&url, &schema).await) } else { None };
        let options = options_for(&time.as_ref().map_or_else(|| url.clone(), |time| time.seen_by(&url)));
        let leases = PostgresLeaseStore::connect(options).await.expect("a lease store");

        let credential = AzureCredential::ConnectionString(Secret::from(address(AZURITE)));
        let options =
            AzureOptions::new(credential, name, Arc::new(TokioTimer), Arc::new(SystemClock), entropy);
        let blobs = AzureStore::connect(options).expect("a blob store");
        assert!(blobs.create_container().await.expect("a new container"), "the container's name is new");
        Self { leases: Arc::new(leases), blobs: Arc::new(blobs), time }
    }
}

impl HandMovedTime {
    /// Takes the clock away from whoever looks for it in `schema` first. It reads what a new [`ManualClock`] reads.
    async fn in_schema(url: &str, schema: &str) -> Self {
        let (session, connection) =
            tokio_postgres::connect(url, NoTls).await.expect("a session of the superuser");
        tokio::spawn(connection);
        let start = ManualClock::new().wall();
        let clocks =
            ["statement_timestamp", "now", "transaction_timestamp", "clock_timestamp"].map(|clock| {
                format!(
                    "CREATE FUNCTION {schema}.{clock}() RETURNS timestamptz STABLE LANGUAGE sql
                 AS 'SELECT reads FROM {schema}.moved_time';"
                )
            });
        let table = format!(
            "CREATE TABLE {schema}.moved_time (reads timestamptz NOT NULL);
             INSERT INTO {schema}.moved_time VALUES ('{start}');"
        );
        let make = table + &clocks.concat();
        session.batch_execute(&make).await.expect("a clock that is moved by hand");
        Self { schema: schema.to_owned(), session }
    }

    /// `url` for sessions that find the schema before the server's own functions.
    fn seen_by(&self, url: &str) -> String {
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}options=-c%20search_path%3D{},pg_catalog", self.schema)
    }

    async fn advance(&self, by: Duration) {
        let Self { schema, session } = self;
        let micros = by.as_micros();
        // A time below the database's unit would be lost unseen.
        assert!(by == Duration::from_micros(u64::try_from(micros).expect("a time that a test can mean")));
        let update =
            format!("UPDATE {schema}.moved_time SET reads = reads + {micros} * interval '1 microsecond'");
        session.batch_execute(&update).await.expect("the schema's time");
    }
}

impl Pair for CloudPair {
    async fn manual() -> Self {
        Self::new(true).await
    }

    async fn real_time() -> Self {
        Self::new(false).await
    }

    fn leases(&self) -> Arc<dyn LeaseStore> {
        self.leases.clone()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.blobs.clone()
    }

    async fn advance(&self, by: Duration) {
        self.time.as_ref().expect("a pair whose time is moved by hand").advance(by).await;
    }
}

fn address(variable: &str) -> String {
    match env::var(variable) {
        Ok(address) if !address.is_empty() => address,
        _ => panic!("{variable} is not set: run `cargo xtask test`, or `cargo xtask services -- COMMAND`"),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_lease::{Acquisition, LeaseRow};

    use super::*;
    use crate::{TTL, tenant};

    async fn row(pair: &CloudPair) -> LeaseRow {
        pair.leases().read(&tenant("ada")).await.unwrap().expect("a row")
    }

    #[tokio::test]
    async fn time_passes_by_hand_alone_and_to_the_microsecond() {
        let pair = CloudPair::manual().await;
        let tenure = Entropy::seeded(1).tenure_id();
        let taken =
            pair.leases().acquire(&tenant("ada"), &"one".parse().unwrap(), tenure, TTL).await.unwrap();
        assert!(matches!(taken, Acquisition::Granted(_)), "{taken:?}");
        let remaining = async || row(&pair).await.owner.expect("an owner").remaining;
        assert_eq!(remaining().await, TTL);
        pair.advance(Duration::from_micros(1)).await;
        assert_eq!(remaining().await + Duration::from_micros(1), TTL);
        pair.advance(TTL).await;
        assert_eq!(remaining().await, Duration::ZERO);

        let other = Entropy::seeded(2).tenure_id();
        let taken = pair.leases().acquire(&tenant("ada"), &"two".parse().unwrap(), other, TTL).await.unwrap();
        assert!(matches!(taken, Acquisition::Granted(_)), "{taken:?}");
    }

    #[tokio::test]
    async fn pairs_see_nothing_of_one_another() {
        let (one, other) = (CloudPair::real_time().await, CloudPair::real_time().await);
        let key = "acme/x".parse().unwrap();
        one.blobs().put_if_absent(&key, bytes::Bytes::from_static(b"x").into()).await.unwrap();
        assert_eq!(other.blobs().get(&key, 1).await.unwrap(), None);
        let tenure = Entropy::seeded(1).tenure_id();
        one.leases().acquire(&tenant("ada"), &"one".parse().unwrap(), tenure, TTL).await.unwrap();
        assert_eq!(other.leases().read(&tenant("ada")).await.unwrap(), None);
    }
}
