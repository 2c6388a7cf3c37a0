//! What happens to the database, and to the way there.

use std::time::Duration;

use futures::{FutureExt as _, future::join_all};
use leasehold_lease::{
    Acquisition, Claim, LeaseError, LeaseStore as _, PostgresLeaseStore, PostgresOptions, Renewal,
};
use tokio::net::TcpListener;

use super::{
    renewals::LOOKS_MAX,
    server::{Schema, Way, connect, url},
};
use crate::stage::{TTL, key, tenure_id};

/// Ends every server process of this store, as a restart of the server does.
async fn end_connections(schema: &Schema) {
    let sql = format!(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = '{}'",
        schema.options.application_name
    );
    let ended: i64 = schema.admin.query_one(&sql, &[]).await.unwrap().get(0);
    assert!(ended > 0);
}

#[tokio::test]
async fn a_store_goes_on_when_its_connections_were_ended() {
    let mut schema = Schema::made(Way::Direct).await;
    schema.options.application_name = schema.name().into();
    let store = schema.store().await;
    let replica = "a".parse().unwrap();
    let wanted = key("acme/t");
    let ask = || store.acquire(&wanted, &replica, tenure_id(1), TTL);
    let first = ask().await.unwrap();
    let reads = join_all((0..4).map(|_| store.read(&wanted))).await;
    assert!(reads.iter().all(Result::is_ok), "several connections lie idle now: {reads:?}");
    end_connections(&schema).await;
    // A connection whose end was not noticed yet fails the call, and takes the other idle ones with it.
    if let Err(error) = ask().await {
        assert!(matches!(error, LeaseError::Unavailable { .. }) && error.is_transient(), "{error:?}");
    }
    assert_eq!(ask().await.unwrap(), first);
    let Acquisition::Granted(grant) = first else { panic!("{first:?}") };
    let claim =
        Claim { key: wanted.clone(), replica: replica.clone(), tenure: tenure_id(1), epoch: grant.epoch };
    let renew = || store.renew(std::slice::from_ref(&claim), TTL);
    assert_eq!(renew().await.unwrap(), [Renewal::Granted]);
    end_connections(&schema).await;
    if let Err(error) = renew().await {
        assert!(error.is_transient(), "{error:?}");
    }
    assert_eq!(renew().await.unwrap(), [Renewal::Granted]);
}

#[tokio::test]
async fn a_call_that_was_dropped_is_not_answered_to_the_next_one() {
    let mut schema = Schema::made(Way::Direct).await;
    schema.options.pool_max = 1;
    let store = schema.store().await;
    let replica = "a".parse().unwrap();
    store.acquire(&key("acme/stuck"), &replica, tenure_id(1), TTL).await.unwrap();
    let mut blocker = connect(&url(Way::Direct)).await;
    let lock = blocker.transaction().await.unwrap();
    let sql = format!("LOCK TABLE {}.lease IN ACCESS EXCLUSIVE MODE", schema.name());
    lock.batch_execute(&sql).await.unwrap();
    {
        let (stuck, tenure) = (key("acme/stuck"), tenure_id(1));
        let mut call = store.acquire(&stuck, &replica, tenure, TTL);
        for _ in 0..LOOKS_MAX {
            assert!((&mut call).now_or_never().is_none());
            if schema.blocked().await == 1 {
                break;
            }
        }
        assert_eq!(schema.blocked().await, 1, "it is under way when it is dropped");
    }
    let rows = store.replicas().await.unwrap();
    assert!(rows.is_empty(), "the one connection of the pool was replaced");
    lock.rollback().await.unwrap();
    let asked = store.acquire(&key("acme/stuck"), &replica, tenure_id(1), TTL).await.unwrap();
    assert!(matches!(asked, Acquisition::Granted(grant) if grant.epoch.get() == 1));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let mut options = PostgresOptions::new(format!("postgres://app:hunter2@{address}/main"));
    options.connect_limit = Duration::from_millis(50);
    let error = PostgresLeaseStore::connect(options).await.unwrap_err();
    assert!(matches!(error, LeaseError::Timeout { limit, .. } if limit.as_millis() == 50), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_no_secret_is_told() {
    let address = {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        gone.local_addr().unwrap()
    };
    let options = PostgresOptions::new(format!("postgres://app:hunter2@{address}/main"));
    let error = PostgresLeaseStore::connect(options).await.unwrap_err();
    assert!(matches!(error, LeaseError::Unavailable { .. }) && error.is_transient(), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn a_database_that_only_reads_is_unavailable_until_it_writes_again() {
    let mut schema = Schema::made(Way::Direct).await;
    schema.options.pool_max = 1;
    let role = format!("{}_reader", schema.name());
    schema.run(&format!("DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'x'")).await;
    schema.run(&format!("ALTER ROLE {role} SET default_transaction_read_only = on")).await;
    let place = url(Way::Direct).split_once('@').unwrap().1.to_owned();
    let mut options = PostgresOptions::new(format!("postgres://{role}:x@{place}"));
    options.schema = schema.name().into();
    let store = PostgresLeaseStore::connect(options).await.unwrap();
    let replica = "a".parse().unwrap();
    let wanted = key("acme/t");
    let ask = || store.acquire(&wanted, &replica, tenure_id(1), TTL);
    let error = ask().await.unwrap_err();
    assert!(matches!(error, LeaseError::Unavailable { .. }), "{error:?}");
    schema.run(&format!("ALTER ROLE {role} RESET default_transaction_read_only")).await;
    assert!(matches!(ask().await.unwrap(), Acquisition::Granted(_)), "a new connection finds that it writes");
    drop(store);
    schema.run(&format!("DROP ROLE {role}")).await;
}

#[tokio::test]
async fn a_commit_waits_for_the_log_whatever_the_databases_default_is() {
    let schema = Schema::made(Way::Direct).await;
    let role = format!("{}_hasty", schema.name());
    schema
        .run(&format!(
            "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'x';
             ALTER ROLE {role} SET synchronous_commit = off;
             CREATE TABLE @.seen (setting text);
             CREATE FUNCTION @.see() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO @.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
             CREATE TRIGGER see AFTER INSERT OR UPDATE ON @.lease FOR EACH ROW EXECUTE FUNCTION @.see()"
        ))
        .await;
    let place = url(Way::Direct).split_once('@').unwrap().1.to_owned();
    let mut options = PostgresOptions::new(format!("postgres://{role}:x@{place}"));
    options.schema = schema.name().into();
    let store = PostgresLeaseStore::connect(options).await.unwrap();
    let replica = "a".parse().unwrap();
    for _ in 0..2 {
        store.acquire(&key("acme/t"), &replica, tenure_id(1), TTL).await.unwrap();
    }
    assert_eq!(schema.number("SELECT count(*) FROM @.seen WHERE setting = 'on'").await, 2);
    assert_eq!(schema.number("SELECT count(*) FROM @.seen").await, 2);
    drop(store);
    schema.run(&format!("DROP ROLE {role}")).await;
}
