//! Processes on the cloud pair: machines that share a database and a container, and no disk.

use std::{fs, time::Duration};

use leasehold_testkit::{PATIENCE, eventually};
use serde_json::json;
use tokio_postgres::NoTls;

use crate::{
    ground::{Ground, address},
    process::{Replica, leasehold_in},
};

/// What `what` says of the tenant in the store.
async fn snapshots(ground: &Ground, key: &str) -> Vec<String> {
    let listed = ground.verb(["snapshot", "list", key, "--json"]).await.assert(0).document();
    let snapshots = listed["snapshots"].as_array().unwrap();
    snapshots.iter().map(|snapshot| snapshot["snapshot"].as_str().unwrap().to_owned()).collect()
}

/// A tenant's life over two machines: written here, handed over, read there, flushed by a SIGTERM, forgotten.
async fn a_life(ground: Ground) {
    let (one, two) = (ground.start("one").await, ground.start("two").await);
    one.write("acme/u", "k-1").await;
    let held = two.append("acme/u", "k-2").await.assert(409);
    assert_eq!((held.code(), &held.body["endpoint"]), ("lease_held", &one.endpoint.as_str().into()));
    one.tenant(["handoff", "acme/u"]).await.assert(0);
    assert_eq!(two.names("acme/u").await, ["k-1"]);
    two.write("acme/u", "k-2").await;
    two.stop().await.assert(0);
    assert_eq!(one.names("acme/u").await, ["k-1", "k-2"], "a SIGTERM flushed what was not published");

    let to = ground.dir.path().join("u.db");
    assert!(!snapshots(&ground, "acme/u").await.is_empty());
    ground.verb(["snapshot", "verify", "acme/u"]).await.assert(0);
    let restored = ground.verb(["snapshot", "restore", "acme/u", "--to", to.to_str().unwrap()]).await;
    assert!(restored.assert(0).out.contains("up to 2-2"));

    one.write("acme/other", "k-1").await;
    let receipt = one.tenant(["forget", "acme/u", "--yes", "--json"]).await.assert(0).document();
    assert!(receipt["objects_deleted"].as_u64().unwrap() > 0, "{receipt}");
    assert_eq!(snapshots(&ground, "acme/u").await, [""; 0]);
    assert_eq!(one.append("acme/u", "k-3").await.assert(410).code(), "tenant_forgotten");
    assert_eq!(one.names("acme/other").await, ["k-1"]);
    one.stop().await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_without_a_common_disk_serve_one_tenant_after_the_other() {
    a_life(Ground::cloud().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn they_do_behind_a_pooler_in_transaction_mode() {
    a_life(Ground::pooled().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_is_taken_over_after_the_ttl_and_its_id_is_free_after_it() {
    let ground = Ground::cloud().await;
    let environment =
        [("LEASEHOLD_TTL", "2s"), ("LEASEHOLD_MARGIN", "400ms"), ("LEASEHOLD_SNAPSHOT__EVERY", "0s")];
    let one = ground.start_in("one", &environment).await;
    let two = ground.start_in("two", &environment).await;
    one.write("acme/u", "k-1").await;
    one.tenant(["snapshot", "acme/u"]).await.assert(0);
    one.write("acme/u", "k-2").await;
    one.kill().await;
    eventually(PATIENCE, "the lease of the killed one runs out", async || {
        let answer = two.events("acme/u").await;
        assert!(answer.status == 200 || answer.code() == "lease_held", "{answer:?}");
        answer.status == 200
    })
    .await;
    assert_eq!(two.names("acme/u").await, ["k-1"], "the tail that was declared");
    // The same id on another machine: nothing of the old one's disk is there.
    let again = Replica::spawn(
        ground.serve("one").into_iter().map(|part| part.replace("/one", "/elsewhere")),
        &environment,
    )
    .await;
    eventually(PATIENCE, "it serves", async || again.is_ready().await).await;
    again.write("acme/v", "k-1").await;
    let twice = ground.refused("two", &environment).await.assert(1);
    assert!(twice.err.contains("error[replica_id_taken]"), "{twice:?}");
    again.stop().await.assert(0);
    two.stop().await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn migrating_says_what_it_did_and_twice_does_nothing() {
    let ground = Ground::unmade(&address("LEASEHOLD_TEST_POSTGRES"), "");
    let rehearsed = ground.verb(["migrate", "--dry-run"]).await.assert(0);
    assert!(
        rehearsed.out.contains("would go from version 0 to 3 (V1__lease, V2__pause, V3__token)"),
        "{rehearsed:?}"
    );
    assert!(rehearsed.out.contains("the container would be made"), "{rehearsed:?}");
    let rehearsed = ground.verb(["migrate", "--dry-run", "--json"]).await.assert(0).document();
    assert_eq!((&rehearsed["dry_run"], &rehearsed["images"]["created"]), (&true.into(), &true.into()));
    let migrated = ground.verb(["migrate", "--json"]).await.assert(0).document();
    let leases = &migrated["leases"];
    assert_eq!(
        (&leases["from"], &leases["to"], &leases["applied"]),
        (&0.into(), &3.into(), &json!(["V1__lease", "V2__pause", "V3__token"]))
    );
    assert_eq!((&leases["schema"], &migrated["images"]["created"]), (&json!(ground.schema), &true.into()));
    let again = ground.verb(["migrate"]).await.assert(0);
    assert!(again.out.contains("is at version 3, nothing is to do"), "{again:?}");
    assert!(again.out.contains("the container is there"), "{again:?}");

    let nothing = leasehold_in(&[], ["migrate", "--json"]).await.assert(2);
    assert_eq!(nothing.error_code(), "invalid_configuration");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_at_once_make_the_tables_once() {
    let ground = Ground::unmade(&address("LEASEHOLD_TEST_POSTGRES"), "");
    let environment = [("LEASEHOLD_AZURE__CREATE_CONTAINER", "true")];
    let (one, two, three) = tokio::join!(
        ground.start_in("one", &environment),
        ground.start_in("two", &environment),
        ground.start_in("three", &environment)
    );
    one.write("acme/u", "k-1").await;
    for replica in [one, two, three] {
        replica.stop().await.assert(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_says_what_to_do() {
    let ground = Ground::unmade(&address("LEASEHOLD_TEST_POSTGRES"), "");
    let unmigrated = ground.refused("a", &[("LEASEHOLD_POSTGRES__MIGRATE", "false")]).await.assert(2);
    assert!(unmigrated.err.contains("error[invalid_configuration]"), "{unmigrated:?}");
    assert!(unmigrated.err.contains(&ground.schema) && unmigrated.err.contains("run `leasehold migrate`"));
    let no_container = ground.refused("a", &[]).await.assert(2);
    assert!(no_container.err.contains("there is no container at http://127.0.0.1:"), "{no_container:?}");
    assert!(no_container.err.contains("az storage container create --name it-"), "{no_container:?}");

    let string = address("LEASEHOLD_TEST_AZURITE");
    let other = string.split(';').map(|pair| match pair.split_once('=') {
        Some(("AccountKey", _)) => "AccountKey=aHVudGVyMg==",
        _ => pair,
    });
    let path = ground.dir.path().join("other-string");
    fs::write(&path, other.collect::<Vec<_>>().join(";")).unwrap();
    let other = [("LEASEHOLD_AZURE__CONNECTION_STRING_FILE", path.to_str().unwrap())];
    let not_ours = ground.refused("a", &other).await.assert(2);
    assert!(
        not_ours.err.contains(" answered 403 ") && not_ours.err.contains("Storage Blob Data Contributor")
    );
    assert!(!not_ours.err.contains("aHVudGVyMg"), "{not_ours:?}");

    let no_key = [("LEASEHOLD_DERIVATION_KEY_FILE", "/nowhere/key")];
    ground.verb(["migrate"]).await.assert(0);
    let no_key = ground.refused("a", &no_key).await.assert(2);
    assert!(no_key.err.contains("`derivation_key_file`: /nowhere/key is not there"), "{no_key:?}");
    ground.start("a").await.stop().await.assert(0);
    fs::write(ground.dir.path().join("derivation.key"), "00".repeat(32)).unwrap();
    let other_key = ground.refused("b", &[]).await.assert(2);
    assert!(other_key.err.contains("orphaned"), "{other_key:?}");

    let dev = ground.serve("a").into_iter().chain(["--dev".to_owned()]);
    let dev = leasehold_in(&[], dev).await.assert(2);
    assert_eq!(dev.error_code(), "invalid_configuration");
    let config = ground.config.as_ref().unwrap().to_str().unwrap();
    let no_id = leasehold_in(&[], ["serve", "--config", config, "--data-dir", "/nowhere"]).await.assert(2);
    assert!(no_id.err.contains("`replica`"), "{no_id:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_for_a_database_that_is_away_and_hears_a_sigterm() {
    // A port that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ground = Ground::unmade(&format!("postgres://app:hunter2@{free}/main"), "");
    let mut waiting = crate::process::Starting::new(ground.serve("a"));
    waiting.until_says("not started yet").await;
    waiting.terminate();
    let ended = waiting.ended(Duration::from_secs(20)).await.assert(0);
    assert_eq!(ended.out, "");
    assert!(!ended.err.contains("hunter2"), "{ended:?}");
}

/// A role that serves, as `sql/README.md` makes it.
async fn serving_role(ground: &Ground, password: &str) -> String {
    let url = address("LEASEHOLD_TEST_POSTGRES");
    let (admin, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let role = format!("{}_app", ground.schema);
    admin.batch_execute(&format!("CREATE ROLE {role} LOGIN PASSWORD '{password}'")).await.unwrap();
    let readme = include_str!("../../../../sql/README.md");
    for grant in readme.lines().filter(|line| line.starts_with("GRANT ")) {
        let grant = grant
            .replace("leasehold_app", &role)
            .replace("SCHEMA leasehold ", &format!("SCHEMA {} ", ground.schema))
            .replace(" leasehold.", &format!(" {}.", ground.schema));
        admin.batch_execute(&grant).await.unwrap();
    }
    let (_, place) = url.split_once('@').unwrap();
    format!("postgres://{role}:{password}@{place}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_ddl_serves_and_no_secret_reaches_a_log() {
    let ground = Ground::cloud().await;
    let password = "correct-horse-battery-staple";
    let url = serving_role(&ground, password).await;
    let account_key = address("LEASEHOLD_TEST_AZURITE");
    let account_key =
        account_key.split(';').find_map(|pair| pair.strip_prefix("AccountKey=")).unwrap().to_owned();
    fs::write(ground.dir.path().join("url"), &url).unwrap();
    let derivation = fs::read_to_string(ground.dir.path().join("derivation.key")).unwrap();
    for format in ["text", "json"] {
        let environment = [("LEASEHOLD_LOG__FILTER", "trace"), ("LEASEHOLD_LOG__FORMAT", format)];
        let replica = ground.start_in("a", &environment).await;
        let key = format!("acme/{format}");
        replica.write(&key, "k-1").await;
        replica.tenant(["snapshot", &key]).await.assert(0);
        replica.tenant(["handoff", &key]).await.assert(0);
        assert_eq!(replica.names(&key).await, ["k-1"]);
        replica.tenant(["forget", &key, "--yes"]).await.assert(0);
        let banner = replica.banner.clone();
        let ended = replica.stop().await.assert(0);
        // Other people's crates are not heard below INFO (decision 0048), and ours say nothing at TRACE.
        assert!(ended.err.contains("DEBUG"), "it was heard below INFO");
        for secret in [password, account_key.as_str(), derivation.trim()] {
            assert!(!ended.err.contains(secret) && !ended.out.contains(secret) && !banner.contains(secret));
        }
        assert!(!ended.err.contains("Signature=") && !ended.err.contains("SharedKey "));
    }

    // The same role where the tables are not there: it is told who makes them.
    let unmade = Ground::unmade(&url, "");
    let refused = unmade.refused("a", &[]).await.assert(2);
    assert!(refused.err.contains("this role may not change them: run `leasehold migrate`"), "{refused:?}");
    assert!(!refused.err.contains(password));
}
