//! What an inspection finds, against what was done to the database.

use std::time::Duration;

use leasehold_lease::{LeaseError, PostgresInspector, PostgresPooling, PostgresSchema, TlsMode};
use leasehold_lease::{LeaseStore as _, PostgresOptions};
use leasehold_testkit::{Cue, Fault, FaultProxy};
use leasehold_types::SystemClock;
use uuid::Uuid;

use super::{
    roles::{PASSWORD, Role},
    server::{Schema, Way, url},
};

const ID: Uuid = Uuid::from_u128(7);

/// A role with the documented grants on tables that are made.
async fn granted() -> Role {
    let role = Role::new(Schema::made(Way::Direct).await).await;
    role.grant_as_documented().await;
    role
}

async fn inspector(role: &Role) -> PostgresInspector {
    PostgresInspector::connect(&role.options(PASSWORD)).await.unwrap()
}

async fn schema_of(role: &Role) -> PostgresSchema {
    inspector(role).await.schema().await.unwrap()
}

#[tokio::test]
async fn what_is_as_documented_is_found_so() {
    let role = granted().await;
    let mut inspector = inspector(&role).await;
    let server = inspector.server().await.unwrap();
    assert!(server.version_number >= 120_000 && server.version.contains('.'), "{server:?}");
    assert_eq!((server.role.as_str(), server.database.as_str()), (role.name.as_str(), "postgres"));
    assert!(!server.is_superuser && !server.is_standby && !server.is_read_only, "{server:?}");
    assert_eq!((server.synchronous_commit.as_str(), server.has_synchronous_standby), ("on", false));
    assert!(server.connections_open >= 1 && server.connections_max > server.connections_open, "{server:?}");
    assert_eq!(server.role_connections_max, None);

    let schema = inspector.schema().await.unwrap();
    assert!(schema.is_there && !schema.may_migrate, "{schema:?}");
    assert_eq!(schema.version, Some(schema.version_needed));
    assert!(schema.missing_grants.is_empty() && schema.excess_rights.is_empty(), "{schema:?}");

    let trips = inspector.round_trips(&SystemClock, 5).await.unwrap();
    assert_eq!(trips.len(), 5);
    // The same machine's calendar, read in milliseconds: off by half of the trip and one more.
    for trip in trips {
        let error_micros = i64::try_from(trip.took.as_micros() / 2).unwrap() + 1_500;
        assert!(trip.ahead_micros.abs() <= error_micros, "{trip:?}");
    }
    let commits = inspector.commits(&SystemClock, 3, ID).await.unwrap();
    assert_eq!((commits.took.len(), commits.synchronous_commit.as_str()), (3, "on"));
    assert_eq!(role.schema.number("SELECT count(*) FROM @.replica").await, 0, "nothing is left");
    assert_eq!(inspector.pooling().await.unwrap(), PostgresPooling::NotSeen);

    assert_eq!(inspector.derivation_fingerprint().await.unwrap(), None);
    role.schema.store().await.bind_derivation_key("f00d").await.unwrap();
    assert_eq!(inspector.derivation_fingerprint().await.unwrap().as_deref(), Some("f00d"));
    role.end().await;
}

#[tokio::test]
async fn a_missing_grant_is_named_as_the_statement_that_gives_it() {
    let role = granted().await;
    let (name, schema) = (role.name.clone(), role.schema.name().to_owned());
    for (revoke, expected) in [
        (
            format!("REVOKE UPDATE ON @.lease FROM {name}"),
            format!("GRANT UPDATE ON {schema}.lease TO {name};"),
        ),
        (
            format!("REVOKE ALL ON @.replica FROM {name}"),
            format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.replica TO {name};"),
        ),
        (
            format!("REVOKE SELECT ON @.schema_history FROM {name}"),
            format!("GRANT SELECT ON {schema}.schema_history TO {name};"),
        ),
        (
            format!("REVOKE USAGE ON SCHEMA @ FROM {name}"),
            format!("GRANT USAGE ON SCHEMA {schema} TO {name};"),
        ),
    ] {
        role.schema.run(&revoke).await;
        let found = schema_of(&role).await;
        assert_eq!(found.missing_grants, [expected], "{revoke}");
        role.schema.admin.batch_execute(&found.missing_grants[0]).await.unwrap();
        assert!(schema_of(&role).await.missing_grants.is_empty(), "{revoke}");
    }
    role.schema.run(&format!("GRANT DELETE, TRUNCATE ON @.lease TO {name}")).await;
    assert_eq!(schema_of(&role).await.excess_rights, ["DELETE on lease", "TRUNCATE on lease"]);
    role.end().await;
}

#[tokio::test]
async fn a_schema_that_is_missing_or_of_another_version_is_told() {
    let role = Role::new(Schema::unmade(Way::Direct).await).await;
    let found = schema_of(&role).await;
    assert_eq!((found.is_there, found.version, found.may_migrate), (false, Some(0), false));
    role.schema.run(&format!("CREATE SCHEMA @ AUTHORIZATION {}", role.name)).await;
    let found = schema_of(&role).await;
    assert_eq!((found.is_there, found.version, found.may_migrate), (true, Some(0), true));
    role.end().await;

    let role = granted().await;
    role.schema.run("UPDATE @.schema_history SET version = 99 WHERE version = (SELECT max(version) FROM @.schema_history)").await;
    assert_eq!(schema_of(&role).await.version, Some(99));
    role.schema.run("DELETE FROM @.schema_history").await;
    assert_eq!(schema_of(&role).await.version, Some(0));
    role.schema.run(&format!("REVOKE SELECT ON @.schema_history FROM {}", role.name)).await;
    assert_eq!(schema_of(&role).await.version, None);
    role.end().await;
}

#[tokio::test]
async fn what_a_role_is_set_to_is_seen() {
    let role = granted().await;
    role.schema
        .run(&format!(
            "ALTER ROLE {0} SET synchronous_commit = off; ALTER ROLE {0} CONNECTION LIMIT 7;
             ALTER ROLE {0} SET default_transaction_read_only = on",
            role.name
        ))
        .await;
    let server = inspector(&role).await.server().await.unwrap();
    assert_eq!((server.synchronous_commit.as_str(), server.is_read_only), ("off", true));
    assert_eq!(server.role_connections_max, Some(7));
    let error = inspector(&role).await.commits(&SystemClock, 1, ID).await.unwrap_err();
    assert!(matches!(error, LeaseError::Unavailable { .. }), "{error:?}");
    role.schema.run(&format!("ALTER ROLE {} RESET default_transaction_read_only", role.name)).await;
    let commits = inspector(&role).await.commits(&SystemClock, 1, ID).await.unwrap();
    assert_eq!(commits.synchronous_commit, "on", "each change turns it on for itself");
    role.end().await;
}

#[tokio::test]
async fn a_transaction_pooler_is_seen() {
    let options = PostgresOptions::new(url(Way::Pooled));
    let inspector = PostgresInspector::connect(&options).await.unwrap();
    assert_eq!(inspector.pooling().await.unwrap(), PostgresPooling::ByTransaction);
    let tls = inspector.tls().await.unwrap();
    assert_eq!((tls.mode, tls.is_used, tls.is_local), (TlsMode::Prefer, false, true));
}

#[tokio::test]
async fn a_question_without_an_answer_costs_its_limit_once() {
    let direct = url(Way::Direct);
    let (user, rest) = direct.split_once('@').unwrap();
    let (address, database) = rest.split_once('/').unwrap();
    let proxy = FaultProxy::start(address.parse().unwrap()).await.unwrap();
    let mut options = PostgresOptions::new(format!("{user}@{}/{database}", proxy.addr()));
    options.statement_limit = Duration::from_millis(50);
    let inspector = PostgresInspector::connect(&options).await.unwrap();
    let held = proxy.plan(Cue::request("server_version_num"), Fault::HoldAnswer);
    let error = inspector.server().await.unwrap_err();
    assert!(matches!(error, LeaseError::Timeout { limit, .. } if limit.as_millis() == 50), "{error:?}");
    let error = inspector.schema().await.unwrap_err();
    assert!(error.to_string().contains("an earlier question"), "{error}");
    assert!(
        !format!("{error} {inspector:?}").contains(user.rsplit_once(':').unwrap().1),
        "no secret is shown"
    );
    held.release();
}
