//! Renewals: what they must not write, and what cannot hold them up.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use leasehold_lease::{Acquisition, Claim, LeaseError, LeaseStore, PostgresLeaseStore, Renewal};

use super::server::{Schema, Way, connect, url};
use crate::stage::{TTL, key, tenure_id};

/// How often a test looks whether the server has come to where it wants it.
pub(super) const LOOKS_MAX: u32 = 10_000;
pub(super) const LONG: Duration = Duration::from_secs(600);

pub(super) async fn take(store: &PostgresLeaseStore, name: &str) -> Claim {
    let replica: leasehold_types::ReplicaId = "a".parse().unwrap();
    match store.acquire(&key(name), &replica, tenure_id(1), LONG).await.unwrap() {
        Acquisition::Granted(grant) => {
            Claim { key: key(name), replica, tenure: tenure_id(1), epoch: grant.epoch }
        }
        other => panic!("{name} is held by {other:?}"),
    }
}

#[tokio::test]
async fn a_refused_call_writes_nothing() {
    let schema = Schema::made(Way::Direct).await;
    let store = schema.store().await;
    let mine = take(&store, "acme/t").await;
    let row = "SELECT (xmin::text::bigint * 1000 + (ctid::text::point)[1]::bigint) FROM @.lease";
    let before = schema.number(row).await;
    let other: leasehold_types::ReplicaId = "b".parse().unwrap();
    let asked = store.acquire(&mine.key, &other, tenure_id(2), TTL).await.unwrap();
    assert!(matches!(asked, Acquisition::Held(_)));
    let stranger = Claim { replica: other, tenure: tenure_id(2), ..mine };
    assert_eq!(store.renew(std::slice::from_ref(&stranger), TTL).await.unwrap(), [Renewal::Refused]);
    assert!(!store.release(&stranger).await.unwrap());
    assert_eq!(schema.number(row).await, before);
    let dead = "SELECT count(*) FROM @.lease WHERE xmax::text <> '0'";
    assert_eq!(schema.number(dead).await, 0, "nothing locked it either");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_do_not_wait_behind_the_pool() {
    let mut schema = Schema::made(Way::Direct).await;
    schema.options.pool_max = 2;
    schema.options.lock_limit = LONG;
    schema.options.statement_limit = LONG;
    let store = Arc::new(schema.store().await);
    let (mine, stuck) = (take(&store, "acme/mine").await, take(&store, "acme/stuck").await);
    let mut blocker = connect(&url(Way::Direct)).await;
    let lock = blocker.transaction().await.unwrap();
    let sql = format!("SELECT FROM {}.lease WHERE lease_key = 'acme/stuck' FOR UPDATE", schema.name());
    lock.execute(&sql, &[]).await.unwrap();

    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let (store, stuck) = (Arc::clone(&store), stuck.clone());
            tokio::spawn(async move { store.advance_epoch(&stuck, stuck.epoch).await })
        })
        .collect();
    for _ in 0..LOOKS_MAX {
        if schema.blocked().await == 2 {
            break;
        }
    }
    assert_eq!(schema.blocked().await, 2, "the whole pool waits");
    assert_eq!(store.renew(&[mine], TTL).await.unwrap(), [Renewal::Granted]);

    lock.rollback().await.unwrap();
    let advanced = join_all(waiting).await.into_iter().map(|one| one.unwrap().unwrap());
    assert_eq!(advanced.flatten().count(), 1, "one of them found the epoch that it named");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_was_overtaken_does_not_shorten_the_lease() {
    let mut schema = Schema::made(Way::Direct).await;
    schema.options.lock_limit = LONG;
    schema.options.statement_limit = LONG;
    let store = Arc::new(schema.store().await);
    let mine = take(&store, "acme/t").await;
    // A later renewal of the same claim, whose row the earlier one waits for.
    let mut later = connect(&url(Way::Direct)).await;
    let overtaking = later.transaction().await.unwrap();
    let sql = format!("UPDATE {}.lease SET expires_at = now() + interval '1 hour'", schema.name());
    overtaking.execute(&sql, &[]).await.unwrap();
    let renewing = |store: Arc<PostgresLeaseStore>, mine: Claim| async move {
        let adopted = store.acquire(&mine.key, &mine.replica, mine.tenure, TTL);
        let (renewed, adopted) = futures::join!(store.renew(std::slice::from_ref(&mine), TTL), adopted);
        (renewed.unwrap(), adopted.unwrap())
    };
    let earlier = tokio::spawn(renewing(Arc::clone(&store), mine.clone()));
    for _ in 0..LOOKS_MAX {
        if schema.blocked().await == 2 {
            break;
        }
    }
    assert_eq!(schema.blocked().await, 2, "both wait for the row");
    overtaking.commit().await.unwrap();
    let (renewed, adopted) = earlier.await.unwrap();
    assert_eq!(renewed, [Renewal::Granted]);
    assert!(matches!(adopted, Acquisition::Granted(grant) if grant.epoch == mine.epoch));
    let row = store.read(&mine.key).await.unwrap().unwrap();
    assert!(row.owner.unwrap().remaining > LONG);
}

async fn a_locked_row(way: Way) {
    let mut schema = Schema::made(way).await;
    schema.options.lock_limit = Duration::from_millis(50);
    let store = schema.store().await;
    let (mine, stuck) = (take(&store, "acme/mine").await, take(&store, "acme/stuck").await);
    let mut blocker = connect(&url(Way::Direct)).await;
    let lock = blocker.transaction().await.unwrap();
    let sql = format!("SELECT FROM {}.lease WHERE lease_key = 'acme/stuck' FOR UPDATE", schema.name());
    lock.execute(&sql, &[]).await.unwrap();

    let batch = [mine.clone(), stuck.clone()];
    let error = store.renew(&batch, TTL).await.unwrap_err();
    assert!(
        matches!(error, LeaseError::Timeout { limit, .. } if limit == schema.options.lock_limit),
        "{error:?}"
    );
    assert!(error.is_transient() && error.to_string().contains("renew 2 leases"), "{error}");
    assert_eq!(store.renew(&[mine], TTL).await.unwrap(), [Renewal::Granted], "alone it is not held up");
    let other = "b".parse().unwrap();
    let asked = store.acquire(&stuck.key, &other, tenure_id(2), TTL).await.unwrap();
    assert!(matches!(asked, Acquisition::Held(_)), "who may not have it waits for nobody");

    lock.rollback().await.unwrap();
    assert_eq!(store.renew(&batch, TTL).await.unwrap(), [Renewal::Granted; 2]);
}

#[tokio::test]
async fn a_locked_row_holds_a_batch_up_no_longer_than_the_lock_limit() {
    a_locked_row(Way::Direct).await;
}

#[tokio::test]
async fn the_lock_limit_holds_behind_a_pooler() {
    a_locked_row(Way::Pooled).await;
}

#[tokio::test]
async fn a_claim_that_is_asked_twice_is_answered_twice() {
    let schema = Schema::made(Way::Direct).await;
    let store = schema.store().await;
    let mine = take(&store, "acme/t").await;
    let answers = store.renew(&[mine.clone(), mine.clone(), mine], TTL).await.unwrap();
    assert_eq!(answers, [Renewal::Granted; 3]);
}
