//! What is looked at: a database, a container and a disk of the test's own, all well until the test breaks one of them.

use std::{
    collections::BTreeMap, env, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc,
    time::Duration,
};

use leasehold_blob::{AzureCredential, AzureOptions, AzureStore, BlobEntry, BlobStore as _};
use leasehold_lease::{PostgresLeaseStore, PostgresOptions, TokioTimer};
use leasehold_testkit::{PATIENCE, within};
use leasehold_types::{Entropy, SystemClock};
use serde_json::Value;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::process::{Ended, leasehold_in};

const PASSWORD: &str = "correct-horse";
const GRANTS: &str = include_str!("../../../../../sql/README.md");

/// What a busy machine alone can make worse; and that the suites' own server runs without fsync.
const OF_THE_MACHINE: &[&str] = &[
    "postgres.fsync",
    "postgres.round_trip",
    "postgres.clock",
    "container.round_trip",
    "state_root.space",
    "state_root.sync",
    "process.open_files",
    "times.margin",
    "times.renewal",
];

pub(super) fn address(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run `cargo xtask test`, which starts the servers that the suites need")
    })
}

/// A value of Azurite's connection string.
pub(super) fn account(name: &str) -> String {
    let text = address("LEASEHOLD_TEST_AZURITE");
    let parts = text.split(';').filter_map(|pair| pair.trim().split_once('='));
    let found = parts.into_iter().find_map(|(key, value)| (key == name).then(|| value.to_owned()));
    found.unwrap_or_else(|| panic!("the connection string has no {name}"))
}

/// A directory on the disk of the build, which is one.
pub(super) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A deployment of the cloud pair.
pub(super) struct Patient {
    pub(super) dir: TempDir,
    /// The schema, and the role that serves.
    pub(super) schema: String,
    pub(super) role: String,
    pub(super) container: String,
    admin: Client,
    environment: BTreeMap<String, String>,
}

impl Patient {
    /// One that is well: the documented grants, a container, a disk, a key.
    pub(super) async fn new() -> Self {
        let name = format!("doctor-{}", Entropy::system().attempt_id());
        let schema = name.replace('-', "_");
        let role = format!("{schema}_app");
        let url = address("LEASEHOLD_TEST_POSTGRES");
        let (admin, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let mut options = PostgresOptions::new(&url);
        options.schema.clone_from(&schema);
        PostgresLeaseStore::migrate(&options).await.unwrap();
        admin.batch_execute(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")).await.unwrap();
        for grant in GRANTS.lines().filter(|line| line.starts_with("GRANT ")) {
            let grant = grant
                .replace("leasehold_app", &role)
                .replace("SCHEMA leasehold ", &format!("SCHEMA {schema} "))
                .replace(" leasehold.", &format!(" {schema}."));
            admin.batch_execute(&grant).await.unwrap();
        }
        assert!(store(&name).create_container().await.unwrap());

        let dir = directory();
        let key = dir.path().join("derivation.key");
        fs::write(&key, "0a".repeat(32)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let (_, place) = url.split_once('@').unwrap();
        let environment = [
            ("POSTGRES__URL", format!("postgres://{role}:{PASSWORD}@{place}")),
            ("POSTGRES__SCHEMA", schema.clone()),
            ("AZURE__ACCOUNT_KEY", account("AccountKey")),
            ("AZURE__ACCOUNT", account("AccountName")),
            ("AZURE__ENDPOINT", account("BlobEndpoint")),
            ("AZURE__CONTAINER", name.clone()),
            ("DATA_DIR", dir.path().join("data").to_str().unwrap().to_owned()),
            ("DERIVATION_KEY_FILE", key.to_str().unwrap().to_owned()),
            ("REPLICA", "a".to_owned()),
            // No hiccup of a busy machine is near these.
            ("TTL", "10m".to_owned()),
            ("MARGIN", "2m".to_owned()),
        ];
        let environment = environment.map(|(key, value)| (format!("LEASEHOLD_{key}"), value)).into();
        Self { dir, schema, role, container: name, admin, environment }
    }

    /// Runs a superuser's statements, `@` standing for the schema and `$` for the role.
    pub(super) async fn run(&self, sql: &str) {
        let sql = sql.replace('@', &self.schema).replace('$', &self.role);
        self.admin.batch_execute(&sql).await.unwrap();
    }

    /// The one number that a query gives, `@` standing for the schema.
    pub(super) async fn number(&self, sql: &str) -> i64 {
        self.admin.query_one(&sql.replace('@', &self.schema), &[]).await.unwrap().get(0)
    }

    /// Sets a key of the configuration.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.environment.insert(format!("LEASEHOLD_{key}"), value.to_owned());
    }

    pub(super) fn get(&self, key: &str) -> &str {
        &self.environment[&format!("LEASEHOLD_{key}")]
    }

    pub(super) fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    /// What the doctor says with these arguments.
    pub(super) async fn ended(&self, arguments: &[&str]) -> Ended {
        leasehold_in(&self.environment(), ["doctor"].iter().chain(arguments)).await
    }

    pub(super) async fn doctor(&self) -> Report {
        Report::of(self.ended(&["--json"]).await)
    }

    /// What lies in the container.
    pub(super) async fn objects(&self) -> Vec<BlobEntry> {
        store(&self.container).list(&"_doctor/".parse().unwrap()).await.unwrap()
    }

    /// Takes the role and the schema away.
    pub(super) async fn end(self) {
        self.run("DROP OWNED BY $; DROP ROLE $; DROP SCHEMA IF EXISTS @ CASCADE").await;
    }
}

/// A store on a container of the suites' account.
fn store(container: &str) -> AzureStore {
    let credential = AzureCredential::ConnectionString(address("LEASEHOLD_TEST_AZURITE").as_str().into());
    let (timer, clock) = (Arc::new(TokioTimer), Arc::new(SystemClock));
    let options = AzureOptions::new(credential, container, timer, clock, Arc::new(Entropy::system()));
    AzureStore::connect(options).unwrap()
}

/// What the doctor said.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) ended: Ended,
    checks: BTreeMap<String, Value>,
}

impl Report {
    pub(super) fn of(ended: Ended) -> Self {
        let document = ended.document();
        assert_eq!(document["format"], 1, "{ended:?}");
        let checks = document["checks"].as_array().unwrap();
        let id_of = |check: &Value| check["id"].as_str().unwrap().to_owned();
        let checks = checks.iter().map(|check| (id_of(check), check.clone())).collect();
        Self { ended, checks }
    }

    #[track_caller]
    pub(super) fn verdict(&self, id: &str) -> &str {
        self.checks.get(id).unwrap_or_else(|| panic!("{id} is not told: {self:?}"))["verdict"]
            .as_str()
            .unwrap()
    }

    /// The ids of a verdict, without what a machine alone can do.
    pub(super) fn with(&self, verdict: &str) -> Vec<&str> {
        let of_verdict = self.checks.iter().filter(|(_, check)| check["verdict"] == verdict);
        let ids = of_verdict.map(|(id, _)| id.as_str());
        ids.filter(|id| verdict == "fail" || !OF_THE_MACHINE.contains(id)).collect()
    }

    /// That nothing failed, and nothing but what is named is to be known.
    #[track_caller]
    pub(super) fn assert_well(&self, warnings: &[&str]) {
        assert_eq!(self.ended.code, Some(0), "{self:?}");
        assert_eq!(self.with("fail"), [""; 0], "{self:?}");
        assert_eq!(self.with("warn"), warnings, "{self:?}");
        assert_eq!(self.with("skipped"), [""; 0], "{self:?}");
    }

    /// That these failed and no others, and that what was found or what is to be done says `part`.
    #[track_caller]
    pub(super) fn assert_fails(&self, ids: &[&str], part: &str) {
        assert_eq!(self.with("fail"), ids, "{self:?}");
        assert_eq!(self.ended.code, Some(1), "{self:?}");
        let check = &self.checks[ids[0]];
        let said = format!("{} {}", check["found"], check["next"]);
        assert!(said.contains(part), "{part} in {said}");
        assert!(check["next"].is_string(), "it says what to do: {said}");
        assert_eq!(self.ended.document()["verdict"], "fail");
    }

    /// That what was not looked at is told, with the check that has to be mended first.
    #[track_caller]
    pub(super) fn assert_skips(&self, prefix: &str, because: &str) {
        let skipped: Vec<_> = self
            .checks
            .iter()
            .filter(|(id, check)| id.starts_with(prefix) && check["verdict"] == "skipped")
            .collect();
        assert!(!skipped.is_empty(), "{self:?}");
        for (id, check) in skipped {
            assert!(check["found"].as_str().unwrap().contains(because), "{id}: {check}");
        }
    }
}

/// That it comes to an end in `limit`.
pub(super) async fn in_time(limit: Duration, patient: &Patient, arguments: &[&str]) -> Report {
    assert!(limit < PATIENCE);
    Report::of(within(limit, "the doctor", patient.ended(arguments)).await)
}

/// An entry of a directory that the doctor left.
pub(super) fn left_in(dir: &std::path::Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}
