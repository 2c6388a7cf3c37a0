//! Where the replicas under test keep leases and images: each pair of backends, as the binary is told of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use leasehold_types::Entropy;
use tempfile::TempDir;

use crate::process::{Ended, Replica, leasehold, leasehold_in};

/// The database, by a superuser, and the way of a replica to it.
const POSTGRES: &str = "LEASEHOLD_TEST_POSTGRES";
/// The same through a pooler in transaction mode.
const PGBOUNCER: &str = "LEASEHOLD_TEST_PGBOUNCER";
const AZURITE: &str = "LEASEHOLD_TEST_AZURITE";
const KEY_FILE: &str = "derivation.key";

/// Tests that are written once, each over every pair of backends.
macro_rules! over_each_pair {
    ($($test:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($crate::ground::Ground::embedded()).await;
            })+
        }

        mod cloud {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($crate::ground::Ground::cloud().await).await;
            })+
        }
    };
}
pub(crate) use over_each_pair;

/// A pair of backends of a test's own.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) dir: TempDir,
    /// The fleet's configuration, where the pair needs one.
    pub(crate) config: Option<PathBuf>,
    /// Of the cloud pair: a name that nobody else has, in Postgres' spelling.
    pub(crate) schema: String,
}

pub(crate) fn address(variable: &str) -> String {
    match std::env::var(variable) {
        Ok(address) if !address.is_empty() => address,
        _ => panic!("{variable} is not set: run `cargo xtask test`, or `cargo xtask services -- COMMAND`"),
    }
}

impl Ground {
    /// A SQLite file and a directory: the replicas share a data directory.
    pub(crate) fn embedded() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), config: None, schema: String::new() }
    }

    /// Postgres and Azure Blob, made by `leasehold migrate`.
    pub(crate) async fn cloud() -> Self {
        Self::migrated(&address(POSTGRES)).await
    }

    /// The same, the database behind PgBouncer.
    pub(crate) async fn pooled() -> Self {
        Self::migrated(&address(PGBOUNCER)).await
    }

    async fn migrated(url: &str) -> Self {
        let ground = Self::unmade(url, "");
        ground.verb(["migrate"]).await.assert(0);
        ground
    }

    /// The configuration of a cloud pair of which nothing is there yet, the database by `url`. `more` stands at its beginning.
    pub(crate) fn unmade(url: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("it-{}", Entropy::system().uuid());
        let schema = name.replace('-', "_");
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("url"), format!("{url}\n")).unwrap();
        fs::write(path("connection-string"), format!("{}\n", address(AZURITE))).unwrap();
        fs::write(path(KEY_FILE), format!("{}\n", "5e".repeat(32))).unwrap();
        let text = format!(
            "{more}
             derivation_key_file = {key:?}
             [postgres]
             url_file = {url:?}
             schema = {schema:?}
             pool_max = 4
             [azure]
             container = {name:?}
             connection_string_file = {azurite:?}
            ",
            key = path(KEY_FILE),
            url = path("url"),
            azurite = path("connection-string"),
        );
        let config = PathBuf::from(path("leasehold.toml"));
        fs::write(&config, text).unwrap();
        Self { dir, config: Some(config), schema }
    }

    /// Where a replica keeps what is its own.
    pub(crate) fn data_dir(&self, replica: &str) -> PathBuf {
        match self.config {
            // A machine of its own.
            Some(_) => self.dir.path().join(replica),
            None => self.dir.path().to_owned(),
        }
    }

    /// The arguments of a replica.
    pub(crate) fn serve(&self, replica: &str) -> Vec<String> {
        let data_dir = self.data_dir(replica);
        let mut arguments = vec!["serve", "--replica", replica, "--listen", "127.0.0.1:0", "--data-dir"];
        arguments.extend([data_dir.to_str().unwrap(), "--json"]);
        match &self.config {
            Some(config) => arguments.extend(["--config", config.to_str().unwrap()]),
            None => arguments.push("--dev"),
        }
        arguments.into_iter().map(str::to_owned).collect()
    }

    /// Starts a replica.
    pub(crate) async fn start(&self, replica: &str) -> Replica {
        self.start_in(replica, &[]).await
    }

    /// The same with these variables.
    pub(crate) async fn start_in(&self, replica: &str, environment: &[(&str, &str)]) -> Replica {
        Replica::spawn(self.serve(replica), environment).await
    }

    /// A replica that is not expected to come up.
    pub(crate) async fn refused(&self, replica: &str, environment: &[(&str, &str)]) -> Ended {
        leasehold_in(environment, self.serve(replica).iter().filter(|argument| *argument != "--json")).await
    }

    /// A verb that asks the stores by the fleet's own configuration.
    pub(crate) async fn verb<const N: usize>(&self, arguments: [&str; N]) -> Ended {
        let place: [&Path; 2] = match &self.config {
            Some(config) => [Path::new("--config"), config],
            None => [Path::new("--data-dir"), self.dir.path()],
        };
        leasehold(arguments.iter().map(Path::new).chain(place)).await
    }
}
