//! What is the SQLite backend's own: its file, its format, the machine's boots, several processes at once.

use std::{fs, path::Path, sync::Arc};

use leasehold_lease::{Acquisition, Announcement, LeaseError, LeaseStore, Renewal, SqliteLeaseStore};
use leasehold_testkit::ManualClock;
use leasehold_types::{Epoch, Floor};
use rusqlite::Connection;
use uuid::Uuid;

use crate::stage::{SECOND, Stage, TTL, key, tenure_id};

/// What format 3 added. A change of this text is a new format.
const FORMAT_3_TOKEN: &str = "CREATE TABLE token ( name TEXT NOT NULL, slot INTEGER NOT NULL CHECK (slot IN (1, 2)), \
         token_id TEXT NOT NULL UNIQUE, hash BLOB NOT NULL CHECK (length(hash) = 32), organizations TEXT NOT NULL, \
         scopes TEXT NOT NULL, created_wall_ms INTEGER NOT NULL, expires_wall_ms INTEGER NOT NULL, \
         PRIMARY KEY (name, slot) ) STRICT, WITHOUT ROWID";

/// The leases as format 2 has them.
const FORMAT_2_LEASE: &str = "CREATE TABLE lease ( lease_key TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL CHECK (epoch >= 1), \
         owner TEXT, tenure_id TEXT, expires_boot_ms INTEGER NOT NULL, forget_floor INTEGER NOT NULL DEFAULT 0 \
         CHECK (forget_floor BETWEEN 0 AND epoch), forgotten_wall_ms INTEGER, recheck_wall_ms INTEGER, \
         receipt TEXT, paused_wall_ms INTEGER, CHECK ((owner IS NULL) = (tenure_id IS NULL)), \
         CHECK ((forget_floor = 0) = (forgotten_wall_ms IS NULL)), \
         CHECK (recheck_wall_ms IS NULL OR forget_floor > 0), CHECK (receipt IS NULL OR forget_floor > 0) ) \
         STRICT, WITHOUT ROWID";

/// Format 1, as files that were made by it are.
const FORMAT_1: &[(&str, &str)] = &[
    (
        "lease",
        "CREATE TABLE lease ( lease_key TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL CHECK (epoch >= 1), \
         owner TEXT, tenure_id TEXT, expires_boot_ms INTEGER NOT NULL, forget_floor INTEGER NOT NULL DEFAULT 0 \
         CHECK (forget_floor BETWEEN 0 AND epoch), forgotten_wall_ms INTEGER, recheck_wall_ms INTEGER, \
         receipt TEXT, CHECK ((owner IS NULL) = (tenure_id IS NULL)), \
         CHECK ((forget_floor = 0) = (forgotten_wall_ms IS NULL)), \
         CHECK (recheck_wall_ms IS NULL OR forget_floor > 0), CHECK (receipt IS NULL OR forget_floor > 0) ) \
         STRICT, WITHOUT ROWID",
    ),
    (
        "lease_recheck",
        "CREATE INDEX lease_recheck ON lease (recheck_wall_ms) WHERE recheck_wall_ms IS NOT NULL",
    ),
    (
        "meta",
        "CREATE TABLE meta ( name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL ) STRICT, WITHOUT ROWID",
    ),
    (
        "replica",
        "CREATE TABLE replica ( replica_id TEXT NOT NULL PRIMARY KEY, instance TEXT NOT NULL, endpoint TEXT, \
         draining INTEGER NOT NULL CHECK (draining IN (0, 1)), open_tenants INTEGER NOT NULL \
         CHECK (open_tenants >= 0), seen_boot_ms INTEGER NOT NULL ) STRICT, WITHOUT ROWID",
    ),
];

fn reopen(path: &Path, clock: &ManualClock, boot: &str) -> Result<SqliteLeaseStore, LeaseError> {
    SqliteLeaseStore::open_with_boot(path, Arc::new(clock.clone()), boot)
}

fn code_of_opening(path: &Path) -> &'static str {
    reopen(path, &ManualClock::new(), "boot-1").unwrap_err().code().as_str()
}

/// What the file is made of, a name and a text each.
fn tables(file: &Connection) -> Vec<(String, String)> {
    let mut select =
        file.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
    select
        .query_map([], |row| {
            let sql: String = row.get(1)?;
            Ok((row.get(0)?, sql.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn the_format_is_pinned() {
    let stage = Stage::new();
    let file = Connection::open(&stage.path).unwrap();
    let found = tables(&file);
    let found: Vec<(&str, &str)> = found.iter().map(|(name, sql)| (&**name, &**sql)).collect();
    let format_3: Vec<_> = FORMAT_1
        .iter()
        .map(|(name, sql)| (*name, if *name == "lease" { FORMAT_2_LEASE } else { sql }))
        .chain([("token", FORMAT_3_TOKEN)])
        .collect();
    assert_eq!(found, format_3);
    let meta = |name: &str| -> String {
        file.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).unwrap()
    };
    assert_eq!((meta("format").as_str(), meta("boot").as_str()), ("3", "boot-1"));
    let mode: String = file.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn a_file_of_format_1_is_read_and_made_one_of_format_3() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leases.db");
    let file = Connection::open(&path).unwrap();
    for (_, sql) in FORMAT_1.iter().filter(|(_, sql)| sql.starts_with("CREATE TABLE")) {
        file.execute_batch(sql).unwrap();
    }
    file.execute_batch(FORMAT_1[1].1).unwrap();
    file.execute_batch(
        "INSERT INTO meta VALUES ('format', '1'), ('boot', 'boot-1');
         INSERT INTO replica VALUES ('a', '00000000-0000-0000-0000-000000000007', 'http://a:1', 0, 1, 1000000);
         INSERT INTO lease VALUES ('acme/t', 7, 'a', '00000000-0000-0000-0000-000000000001', 1004000,
                                   5, 1767225600000, 1767225600001, '{\"floor\":5}');",
    )
    .unwrap();
    let store = reopen(&path, &ManualClock::new(), "boot-1").unwrap();
    let row = store.read(&key("acme/t")).await.unwrap().unwrap();
    let owner = row.owner.unwrap();
    assert_eq!((row.epoch, row.floor), (Epoch::new(7).unwrap(), Floor::new(5).unwrap()));
    assert_eq!(row.forgotten_at.unwrap().to_string(), "2026-01-01T00:00:00.000Z");
    assert_eq!(row.receipt.as_deref(), Some("{\"floor\":5}"));
    assert_eq!((owner.replica.as_str(), owner.tenure, owner.remaining), ("a", tenure_id(1), 4 * SECOND));
    assert_eq!(owner.endpoint.as_deref(), Some("http://a:1"));
    assert_eq!(store.replicas().await.unwrap()[0].announcement.instance, Uuid::from_u128(7));
    assert_eq!(row.paused_at, None);
    assert_eq!(tables(&file), tables(&Connection::open(&Stage::new().path).unwrap()));
    // A process of the older format that has it open goes on.
    file.execute_batch("INSERT INTO lease (lease_key, epoch, expires_boot_ms) VALUES ('acme/u', 1, 0)")
        .unwrap();
    drop(store);
    let again = reopen(&path, &ManualClock::new(), "boot-1").unwrap();
    assert_eq!(again.pause(&key("acme/u")).await.unwrap(), Some(true), "made so once");
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_was() {
    let stage = Stage::new();
    let file = Connection::open(&stage.path).unwrap();
    file.execute("UPDATE meta SET value = '4' WHERE name = 'format'", []).unwrap();
    let error = reopen(&stage.path, &stage.clock, "boot-2").unwrap_err();
    assert_eq!(error.code().as_str(), "format_too_new");
    assert!(error.to_string().contains("format is 4"), "{error}");
    let boot: String =
        file.query_row("SELECT value FROM meta WHERE name = 'boot'", [], |row| row.get(0)).unwrap();
    assert_eq!(boot, "boot-1");
}

#[test]
fn what_is_no_lease_store_is_refused_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "this is no database, however long one makes it".repeat(50)).unwrap();
    assert_eq!(code_of_opening(&text), "damaged");

    let other = dir.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(&other).unwrap();
    assert_eq!(code_of_opening(&other), "damaged");
    assert_eq!(fs::read(&other).unwrap(), before);

    let missing = dir.path().join("none/leases.db");
    assert_eq!(code_of_opening(&missing), "local_io");
    let error = reopen(&missing, &ManualClock::new(), "boot-1").unwrap_err();
    assert!(error.to_string().contains("none/leases.db"), "{error}");
    assert_eq!(code_of_opening(dir.path()), "local_io");
}

#[tokio::test]
async fn after_a_reboot_every_lease_has_run_out_and_no_replica_is_alive() {
    let stage = Stage::new();
    stage.clock.advance(1_000_000 * SECOND);
    stage.hold("acme/t", "a", 1).await;
    let said = Announcement {
        replica: "a".parse().unwrap(),
        instance: Uuid::from_u128(1),
        endpoint: Some("http://a:1".into()),
        draining: false,
        open_tenants: 1,
    };
    stage.store.announce(&said, TTL, false).await.unwrap();

    let same_boot = reopen(&stage.path, &stage.clock, "boot-1").unwrap();
    let replica = "b".parse().unwrap();
    let asked = same_boot.acquire(&key("acme/t"), &replica, tenure_id(2), TTL).await.unwrap();
    assert!(matches!(asked, Acquisition::Held(_)));

    // The machine's clock starts again near its origin, far below the expiry that was written.
    let rebooted = reopen(&stage.path, &ManualClock::new(), "boot-2").unwrap();
    let row = rebooted.read(&key("acme/t")).await.unwrap().unwrap();
    assert!(row.owner.is_some_and(|owner| owner.remaining.is_zero() && owner.endpoint.is_none()));
    assert!(rebooted.replicas().await.unwrap().is_empty());
    match rebooted.acquire(&key("acme/t"), &replica, tenure_id(2), TTL).await.unwrap() {
        Acquisition::Granted(grant) => assert_eq!(grant.epoch, Epoch::new(2).unwrap()),
        other => panic!("{other:?} is of another boot"),
    }
}

#[tokio::test]
async fn a_lease_survives_its_store() {
    let stage = Stage::new();
    let claim = stage.hold("acme/t", "a", 1).await.claim();
    let Stage { clock, path, faults, store, dir } = stage;
    drop((faults, store));
    let again = reopen(&path, &clock, "boot-1").unwrap();
    assert!(again.read(&claim.key).await.unwrap().unwrap().is_of(&claim));
    assert_eq!(again.renew(&[claim], TTL).await.unwrap(), [Renewal::Granted]);
    drop((again, dir));
}

#[tokio::test]
async fn a_refusal_writes_nothing() {
    let stage = Stage::new();
    let held = stage.hold("acme/t", "a", 1).await.claim();
    let stranger = leasehold_lease::Claim { tenure: tenure_id(9), ..held };
    let file = Connection::open(&stage.path).unwrap();
    // SQLite's own count of the commits that changed the file, other connections' included.
    let changes = || -> i64 { file.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap() };
    let before = changes();
    stage.try_hold("acme/t", "b", 2).await;
    let store = &stage.store;
    assert_eq!(store.renew(std::slice::from_ref(&stranger), TTL).await.unwrap(), [Renewal::Refused]);
    assert!(!store.release(&stranger).await.unwrap());
    assert_eq!(store.raise_floor(&stranger, TTL).await.unwrap(), None);
    assert_eq!(store.advance_epoch(&stranger, Epoch::FIRST).await.unwrap(), None);
    assert!(!store.store_receipt(&stranger, "x").await.unwrap());
    assert_eq!(changes(), before);
    stage.hold("acme/other", "a", 3).await;
    assert_ne!(changes(), before, "the count does see a change");
}

#[tokio::test]
async fn a_row_that_breaks_the_rules_is_named() {
    let stage = Stage::new();
    stage.hold("acme/t", "a", 1).await;
    stage.hold("acme/well", "a", 2).await;
    let file = Connection::open(&stage.path).unwrap();
    file.execute("UPDATE lease SET tenure_id = 'x' WHERE lease_key = 'acme/t'", []).unwrap();
    let error = stage.store.read(&key("acme/t")).await.unwrap_err();
    assert_eq!(error.code().as_str(), "damaged");
    assert!(error.to_string().contains("acme/t") && error.to_string().contains('x'), "{error}");
    assert!(stage.store.read(&key("acme/well")).await.is_ok(), "the others go on");
}

#[tokio::test]
async fn a_file_that_another_process_keeps_is_waited_for_within_bounds() {
    let stage = Stage::new();
    let other = Connection::open(&stage.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let replica = "a".parse().unwrap();
    let error = stage.store.acquire(&key("acme/t"), &replica, tenure_id(1), TTL).await.unwrap_err();
    assert_eq!(error.code().as_str(), "lease_store_unavailable");
    assert!(error.is_transient() && error.to_string().contains("acquire acme/t"), "{error}");
    assert_eq!(stage.store.read(&key("acme/t")).await.unwrap(), None, "reading waits for nobody");
    other.execute_batch("ROLLBACK").unwrap();
    stage.hold("acme/t", "a", 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_make_the_file_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leases.db");
    let clock = ManualClock::new();
    let openers = (0..6_u128).map(|opener| {
        let (path, clock) = (path.clone(), clock.clone());
        tokio::task::spawn_blocking(move || (opener, reopen(&path, &clock, "boot-1").unwrap()))
    });
    for (opener, store) in futures::future::join_all(openers).await.into_iter().map(Result::unwrap) {
        let replica = format!("r{opener}").parse().unwrap();
        let asked =
            store.acquire(&key(&format!("acme/{opener}")), &replica, tenure_id(opener), TTL).await.unwrap();
        assert!(matches!(asked, Acquisition::Granted(_)));
    }
}

#[tokio::test]
async fn an_abandoned_call_is_executed_or_not_and_the_store_goes_on() {
    let stage = Stage::new();
    for tenure in 0..20 {
        let replica = "a".parse().unwrap();
        let acquired_key = key("acme/t");
        let acquisition = stage.store.acquire(&acquired_key, &replica, tenure_id(tenure), TTL);
        // Dropped after its first poll: it waits for its turn or already has it.
        drop(futures::future::select(acquisition, std::future::ready(())).await);
    }
    let row = stage.store.read(&key("acme/t")).await.unwrap();
    assert!(row.is_none_or(|row| row.epoch == Epoch::FIRST));
    stage.hold("acme/other", "a", 99).await;
}

#[tokio::test]
async fn an_inspection_tells_what_a_file_is_and_changes_nothing() {
    let stage = Stage::new();
    let inspect = || SqliteLeaseStore::inspect(&stage.path);
    let found = inspect().unwrap().unwrap();
    assert_eq!((found.format, found.format_known, found.derivation_fingerprint), (3, 3, None));
    assert!(!found.is_of_this_boot, "the stage's boot is none of this machine's");
    assert!(!inspect().unwrap().unwrap().is_of_this_boot, "and stays so");
    stage.store.bind_derivation_key("f00d").await.unwrap();
    assert_eq!(inspect().unwrap().unwrap().derivation_fingerprint.as_deref(), Some("f00d"));
    let here = stage.dir.path().join("here.db");
    assert_eq!(SqliteLeaseStore::inspect(&here).unwrap(), None);
    assert!(!here.exists());
    drop(SqliteLeaseStore::open(&here, Arc::new(stage.clock.clone())).unwrap());
    assert!(SqliteLeaseStore::inspect(&here).unwrap().unwrap().is_of_this_boot);
    let path = stage.dir.path().join("other");
    fs::write(&path, b"").unwrap();
    assert_eq!(SqliteLeaseStore::inspect(&path).unwrap(), None, "a start would fill it");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    assert!(matches!(SqliteLeaseStore::inspect(&path).unwrap_err(), LeaseError::Unusable { .. }));
    fs::write(&path, b"no database, whatever its name, and long enough to be asked").unwrap();
    assert!(matches!(SqliteLeaseStore::inspect(&path).unwrap_err(), LeaseError::Unusable { .. }));
    assert!(!SqliteLeaseStore::boot().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_follow_their_contract() {
    let stage = Stage::new();
    let [store, another] = [(); 2].map(|()| reopen(&stage.path, &stage.clock, "boot-1").unwrap());
    leasehold_testkit::conformance::tokens::tokens_are_kept_two_of_a_name_until_they_end(&store, &another)
        .await;
}
