//! The cloud pair: leases in Postgres, objects in Azure Blob (Azurite).

use std::{env, fmt, sync::Arc, time::Duration};

use leasehold_blob::{
    AzureCredential, AzureLimits, AzureOptions, AzureStore, BlobStore, DirectoryStore, Secret,
};
use leasehold_lease::{LeaseStore, PostgresLeaseStore, PostgresOptions, TokenStore, TokioTimer};
use leasehold_types::{Clock as _, Entropy, LeaseKey, SystemClock};
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::{ManualClock, Pair, kept_states::Tables};

/// The URL of a Postgres superuser, as `cargo xtask test` tells it.
const POSTGRES: &str = "LEASEHOLD_TEST_POSTGRES";
/// An Azurite's connection string, as `cargo xtask test` tells it.
const AZURITE: &str = "LEASEHOLD_TEST_AZURITE";

/// A few replicas in one process: two fleets at a time leave most of a server's connections to other suites.
const POOL_MAX: usize = 4;

/// Where the servers of a [`CloudPair`] are. A test that has servers of its own, or a network that fails before them, says so.
#[derive(Clone)]
pub struct CloudServers {
    /// The URL of a Postgres superuser.
    pub postgres: String,
    /// An Azurite's connection string; `None`: what is about the database alone keeps its objects in a directory.
    pub azurite: Option<String>,
    /// How long the blob store's requests may take, and how often they are made.
    pub azure_limits: AzureLimits,
}

impl fmt::Debug for CloudServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addresses hold passwords, if only for one run.
        f.debug_struct("CloudServers").field("azure_limits", &self.azure_limits).finish_non_exhaustive()
    }
}

impl CloudServers {
    /// Those of the run.
    ///
    /// # Panics
    /// If the environment does not name them.
    #[must_use]
    pub fn of_the_run() -> Self {
        let azure_limits = AzureLimits::default();
        Self { postgres: address(POSTGRES), azurite: Some(address(AZURITE)), azure_limits }
    }
}

/// [`PostgresLeaseStore`] and [`AzureStore`], in a schema and a container of their own, which nobody else sees and which go
/// with the servers.
///
/// Where time is moved by hand it is moved in the database, and nowhere else: the store's sessions find a function of the
/// schema where they look for the server's clock. So nothing runs out because a machine was slow.
pub struct CloudPair {
    leases: Arc<PostgresLeaseStore>,
    blobs: Arc<dyn BlobStore>,
    postgres: String,
    schema: String,
    /// Whoever moves time in the schema; `None` where it is the server's.
    time: Option<HandMovedTime>,
    /// Of objects that are in no container. Declared last: removed after the store in it is closed.
    _dir: Option<TempDir>,
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
    /// On these servers, in their time.
    pub async fn at(servers: &CloudServers) -> Self {
        Self::new(servers, false).await
    }

    /// On these servers, with the lease store's time moved by hand.
    pub async fn manual_at(servers: &CloudServers) -> Self {
        Self::new(servers, true).await
    }

    async fn new(servers: &CloudServers, time_by_hand: bool) -> Self {
        let entropy = Arc::new(Entropy::system());
        let name = format!("pair-{}", entropy.uuid());
        let schema = name.replace('-', "_");

        let url = &servers.postgres;
        let options_for = |url: &str| {
            let mut options = PostgresOptions::new(url);
            options.schema.clone_from(&schema);
            options.pool_max = POOL_MAX;
            options
        };
        PostgresLeaseStore::migrate(&options_for(url)).await.expect("the lease tables in a new schema");
        let time = if time_by_hand { Some(HandMovedTime::in_schema(url, &schema).await) } else { None };
        let options = options_for(&time.as_ref().map_or_else(|| url.clone(), |time| time.seen_by(url)));
        let leases = PostgresLeaseStore::connect(options).await.expect("a lease store");

        let (blobs, dir): (Arc<dyn BlobStore>, _) = if let Some(azurite) = &servers.azurite {
            (Arc::new(container(azurite, name, servers.azure_limits, entropy).await), None)
        } else {
            let dir = tempfile::tempdir().expect("a directory for objects");
            let store = DirectoryStore::open_without_sync(&dir.path().join("store"));
            (Arc::new(store.expect("a blob store")), Some(dir))
        };
        let postgres = url.clone();
        Self { leases: Arc::new(leases), blobs, postgres, schema, time, _dir: dir }
    }

    /// The URL of the database's superuser, and the schema in which the leases are.
    #[must_use]
    pub fn postgres(&self) -> (&str, &str) {
        (&self.postgres, &self.schema)
    }

    async fn run(&self, sql: &str) {
        connected(&self.postgres).await.batch_execute(sql).await.expect("what a superuser may do");
    }
}

/// A store over a new container.
async fn container(azurite: &str, name: String, limits: AzureLimits, entropy: Arc<Entropy>) -> AzureStore {
    let credential = AzureCredential::ConnectionString(Secret::from(azurite.to_owned()));
    let mut options =
        AzureOptions::new(credential, name, Arc::new(TokioTimer), Arc::new(SystemClock), entropy);
    options.limits = limits;
    let store = AzureStore::connect(options).expect("a blob store");
    assert!(store.create_container().await.expect("a new container"), "the container's name is new");
    store
}

async fn connected(url: &str) -> tokio_postgres::Client {
    let (session, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("a session of the superuser");
    tokio::spawn(connection);
    session
}

impl HandMovedTime {
    /// Takes the clock away from whoever looks for it in `schema` first. It reads what a new [`ManualClock`] reads.
    async fn in_schema(url: &str, schema: &str) -> Self {
        let session = connected(url).await;
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
        Self::manual_at(&CloudServers::of_the_run()).await
    }

    async fn real_time() -> Self {
        Self::at(&CloudServers::of_the_run()).await
    }

    fn leases(&self) -> Arc<dyn LeaseStore> {
        self.leases.clone()
    }

    fn tokens(&self) -> Arc<dyn TokenStore> {
        self.leases.clone()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.blobs.clone()
    }

    async fn advance(&self, by: Duration) {
        self.time.as_ref().expect("a pair whose time is moved by hand").advance(by).await;
    }

    async fn keep_states(&self) {
        let schema = &self.schema;
        self.run(&format!(
            "CREATE TABLE {schema}.lease_states (n bigint GENERATED ALWAYS AS IDENTITY, LIKE {schema}.lease);
             CREATE FUNCTION {schema}.keep_state() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO {schema}.lease_states VALUES (DEFAULT, NEW.*); RETURN NULL; END $$;
             CREATE TRIGGER keep_state AFTER INSERT OR UPDATE ON {schema}.lease
             FOR EACH ROW EXECUTE FUNCTION {schema}.keep_state();"
        ))
        .await;
    }

    async fn kept_states(&self) -> u32 {
        let schema = &self.schema;
        self.run(&format!("DROP TRIGGER keep_state ON {schema}.lease")).await;
        let count = format!("SELECT count(*) FROM {schema}.lease_states");
        let row = connected(&self.postgres).await.query_one(&count, &[]).await.expect("a count");
        u32::try_from(row.get::<_, i64>(0)).expect("a few states")
    }

    async fn set_back(&self, states: u32, only: Option<&LeaseKey>) {
        let schema = &self.schema;
        let (lease, kept) = (format!("{schema}.lease"), format!("{schema}.lease_states"));
        let names = format!(
            "SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
              WHERE attrelid = '{lease}'::regclass AND attnum > 0 AND NOT attisdropped"
        );
        let row = connected(&self.postgres).await.query_one(&names, &[]).await.expect("the lease's columns");
        let tables = Tables { lease: &lease, states: &kept, columns: row.get(0) };
        self.run(&tables.set_back(states, only)).await;
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
