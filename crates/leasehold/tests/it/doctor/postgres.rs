//! A database that is broken in one way.

use super::patient::{Patient, address};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_well_is_ok_and_nothing_is_left() {
    let patient = Patient::new().await;
    let report = patient.doctor().await;
    report.assert_well(&[]);
    assert_eq!(report.verdict("postgres.rights"), "ok");
    assert_eq!(report.verdict("container.soft_delete"), "ok");
    assert_eq!(report.verdict("derivation_key.bound"), "ok");
    assert_eq!(patient.objects().await, []);
    assert_eq!(patient.number("SELECT count(*) FROM @.replica").await, 0);
    assert_eq!(patient.number("SELECT count(*) FROM @.settings").await, 0, "no key was bound");
    assert!(!patient.dir.path().join("data").exists(), "no directory was made");
    assert_eq!(super::patient::left_in(patient.dir.path()).len(), 1, "the key");

    let table = patient.ended(&[]).await.assert(0);
    let head: Vec<&str> = table.out.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["CHECK", "VERDICT", "FOUND"]);
    let row = table.out.lines().find(|line| line.starts_with("postgres.reach")).unwrap();
    assert!(row.contains("  ok ") && row.contains(&patient.role), "{row}");
    assert!(table.out.lines().last().unwrap().contains("0 wrong, 0 skipped"), "{table:?}");
    for secret in ["correct-horse", &super::patient::account("AccountKey"), "0a0a"] {
        assert!(!table.out.contains(secret) && !table.err.contains(secret), "{table:?}");
    }
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_fails_and_the_rest_is_looked_at() {
    let mut patient = Patient::new().await;
    let url = patient.get("POSTGRES__URL").replace("correct-horse", "battery-staple");
    patient.set("POSTGRES__URL", &url);
    let report = patient.doctor().await;
    report.assert_fails(&["postgres.reach"], "password");
    report.assert_skips("postgres.", "postgres.reach failed");
    report.assert_skips("times.", "postgres.round_trip is not known");
    report.assert_skips("derivation_key.", "postgres.reach failed");
    assert_eq!(report.verdict("container.put_if_absent"), "ok");
    assert_eq!(report.verdict("state_root.writable"), "ok");
    assert!(!report.ended.out.contains("battery-staple") && !report.ended.err.contains("battery-staple"));
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_missing_older_or_newer_fails() {
    let patient = Patient::new().await;
    for (break_it, part) in [
        (
            "UPDATE @.schema_history SET version = 99 WHERE version = (SELECT max(version) FROM @.schema_history)",
            "use a newer build",
        ),
        ("DELETE FROM @.schema_history", "`leasehold migrate` as the role that owns the schema"),
        ("DROP SCHEMA @ CASCADE", "CREATE SCHEMA"),
    ] {
        patient.run(break_it).await;
        let report = patient.doctor().await;
        report.assert_fails(&["postgres.schema"], part);
        assert_eq!(report.verdict("postgres.reach"), "ok");
    }
    patient.doctor().await.assert_skips("postgres.", "");
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_what_it_needs_is_told_the_grant() {
    let patient = Patient::new().await;
    patient.run("REVOKE INSERT, UPDATE ON @.lease FROM $").await;
    let report = patient.doctor().await;
    let grant = format!("GRANT INSERT, UPDATE ON {}.lease TO {};", patient.schema, patient.role);
    report.assert_fails(&["postgres.rights"], &grant);
    report.assert_skips("postgres.", "postgres.rights failed");
    patient.run(&grant).await;
    patient.doctor().await.assert_well(&[]);
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_whose_commits_do_not_wait_or_that_only_reads_fails() {
    let patient = Patient::new().await;
    patient.run("ALTER ROLE $ SET synchronous_commit = off").await;
    let mend = format!("ALTER ROLE {} SET synchronous_commit = on;", patient.role);
    patient.doctor().await.assert_fails(&["postgres.synchronous_commit"], &mend);
    patient.run(&mend).await;
    patient.run("ALTER ROLE $ SET default_transaction_read_only = on").await;
    let mend = format!("ALTER ROLE {} SET default_transaction_read_only = off;", patient.role);
    let report = patient.doctor().await;
    report.assert_fails(&["postgres.writable"], &mend);
    report.assert_skips("postgres.", "postgres.writable failed");
    patient.run(&mend).await;
    patient.doctor().await.assert_well(&[]);
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_with_too_few_connections_fails() {
    let patient = Patient::new().await;
    patient.run("ALTER ROLE $ CONNECTION LIMIT 9").await;
    patient.doctor().await.assert_fails(&["postgres.connections"], "room for 0 replicas of 10");
    patient.run("ALTER ROLE $ CONNECTION LIMIT 19").await;
    patient.doctor().await.assert_well(&["postgres.connections"]);
    let strict = patient.ended(&["--strict", "--json"]).await.assert(1).document();
    assert_eq!((&strict["verdict"], &strict["counts"]["fail"]), (&"warn".into(), &0.into()));
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_derivation_key_fails() {
    let patient = Patient::new().await;
    patient.run("INSERT INTO @.settings VALUES ('derivation_key', 'beefbeefbeefbeef')").await;
    patient.doctor().await.assert_fails(&["derivation_key.bound"], "it would orphan every tenant");
    std::fs::remove_file(patient.get("DERIVATION_KEY_FILE")).unwrap();
    patient.doctor().await.assert_fails(&["derivation_key.file"], "a new key would orphan every tenant");
    std::fs::write(patient.get("DERIVATION_KEY_FILE"), "no key").unwrap();
    patient.doctor().await.assert_fails(&["derivation_key.file"], "64 hexadecimal digits");
    patient.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_behind_a_transaction_pooler_is_only_told() {
    let mut patient = Patient::new().await;
    patient.set("POSTGRES__URL", &address("LEASEHOLD_TEST_PGBOUNCER"));
    let report = patient.doctor().await;
    report.assert_well(&["postgres.rights"]);
    assert!(report.ended.out.contains("a pooler gives each transaction"), "{report:?}");
    patient.end().await;
}
