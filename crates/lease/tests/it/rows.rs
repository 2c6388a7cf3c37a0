//! Rows that nobody of ours wrote: each reading of them is the row, or damage that is told by its key; never a panic, and never in the way of
//! the rows beside it.

use std::{sync::Arc, time::Duration};

use leasehold_lease::{
    Acquisition, Announcement, Claim, LeaseError, LeaseStore, NewToken, SqliteLeaseStore, TokenStore,
};
use leasehold_testkit::ManualClock;
use leasehold_types::{ApiToken, Entropy, ErrorCode, Scopes};
use rusqlite::Connection;
use uuid::Uuid;

use crate::{
    postgres::server::{Schema, Way},
    stage::{SECOND, TTL, key, tenure_id},
};

/// The columns of the tables, with what may be written into them on both stores: texts or numbers.
const TEXTS: [(&str, &str); 11] = [
    ("lease", "lease_key"),
    ("lease", "owner"),
    ("lease", "tenure_id"),
    ("lease", "receipt"),
    ("replica", "replica_id"),
    ("replica", "instance"),
    ("replica", "endpoint"),
    ("token", "name"),
    ("token", "token_id"),
    ("token", "organizations"),
    ("token", "scopes"),
];
const NUMBERS: [(&str, &str); 3] =
    [("lease", "epoch"), ("lease", "forget_floor"), ("replica", "open_tenants")];

fn odd_texts() -> Vec<String> {
    let plain = [
        "",
        " ",
        "..",
        "acme",
        "acme/../u",
        "acme/u/v",
        "Acme/u",
        "/",
        "\u{430}cme/u",
        "acme/u\n",
        "acme/\u{202e}u",
        "-1",
        "0",
        "null",
        "*",
        "* acme",
        "{}",
        "{\"format\":2}",
        "00000000-0000-4000-8000-00000000000g",
        "read\tadmin",
        "' or 1=1 --",
        "http://b:1\r\nX: 1",
    ];
    plain.into_iter().map(str::to_owned).chain(["a".repeat(10 * 1024), "[".repeat(10 * 1024)]).collect()
}

const ODD_NUMBERS: [i64; 6] = [i64::MIN, -1, 0, 1, 2, i64::MAX];

/// Two tenants, of which one was forgotten, a replica and a token.
async fn furnish(store: &(impl LeaseStore + TokenStore)) {
    let replica = "a".parse().unwrap();
    for (name, tenure) in [("acme/damaged", 1), ("acme/other", 2)] {
        let granted = store.acquire(&key(name), &replica, tenure_id(tenure), TTL).await.unwrap();
        let Acquisition::Granted(grant) = granted else { panic!("{granted:?}") };
        if tenure == 1 {
            let claim =
                Claim { key: key(name), replica: replica.clone(), tenure: tenure_id(1), epoch: grant.epoch };
            store.raise_floor(&claim, Duration::ZERO).await.unwrap().unwrap();
            assert!(store.store_receipt(&claim, "{}").await.unwrap());
        }
    }
    let announcement = Announcement {
        replica: replica.clone(),
        instance: Uuid::from_u128(1),
        endpoint: Some("http://a:1".to_owned()),
        draining: false,
        open_tenants: 1,
    };
    store.announce(&announcement, SECOND, false).await.unwrap();
    let token = ApiToken::mint(&Entropy::seeded(1));
    let new = NewToken {
        name: "crm".parse().unwrap(),
        id: token.id().clone(),
        hash: token.hash(),
        organizations: "acme".parse().unwrap(),
        scopes: Scopes::ALL,
        good_for: TTL * 1_000,
    };
    store.add_token(&new).await.unwrap();
}

/// Reads all that there is, by every way; how many of the readings were told as damage.
async fn read_all(store: &(impl LeaseStore + TokenStore)) -> usize {
    let (damaged, replica) = (key("acme/damaged"), "b".parse().unwrap());
    let read = [
        store.read(&damaged).await.map(drop),
        store.list(damaged.org(), None, 10).await.map(drop),
        store.due_rechecks(10).await.map(drop),
        store.replicas().await.map(drop),
        store.tokens().await.map(drop),
        store.acquire(&damaged, &replica, tenure_id(9), TTL).await.map(drop),
        store.pause(&damaged).await.map(drop),
        store.resume(&damaged).await.map(drop),
    ];
    let mut told = 0;
    for error in read.into_iter().filter_map(Result::err) {
        match &error {
            LeaseError::Damaged { key, detail } => {
                assert!(!key.is_empty() || !detail.is_empty());
                assert_eq!(error.code(), ErrorCode::Damaged);
                told += 1;
            }
            LeaseError::EpochsExhausted { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    // Whatever is wrong with that row, the one beside it is what it was.
    let other = store.read(&key("acme/other")).await.unwrap().unwrap();
    assert_eq!(other.owner.map(|owner| owner.tenure), Some(tenure_id(2)));
    told
}

/// Every odd value in every column, one at a time. `put` says whether the store takes a statement at all.
async fn hold(store: &(impl LeaseStore + TokenStore), put: impl AsyncFn(&str) -> bool) {
    let texts = TEXTS.iter().flat_map(|column| {
        odd_texts().into_iter().map(move |text| (*column, format!("'{}'", text.replace('\'', "''"))))
    });
    let numbers = NUMBERS.iter().flat_map(|column| ODD_NUMBERS.map(|number| (*column, number.to_string())));
    let (mut taken, mut told) = (0, 0);
    for ((table, column), value) in texts.chain(numbers) {
        let of_row = match table {
            "lease" => "lease_key = 'acme/damaged'",
            "replica" => "replica_id = 'a'",
            _ => "slot = 1",
        };
        // The row as it was comes back by its copy.
        assert!(put(&format!("CREATE TABLE @kept AS SELECT * FROM @{table}")).await);
        if put(&format!("UPDATE @{table} SET {column} = {value} WHERE {of_row}")).await {
            taken += 1;
            told += read_all(store).await;
        }
        assert!(put(&format!("DELETE FROM @{table}")).await);
        assert!(put(&format!("INSERT INTO @{table} SELECT * FROM @kept")).await);
        assert!(put("DROP TABLE @kept").await);
    }
    assert_eq!(read_all(store).await, 0, "nothing is left of it");
    assert!(taken > 100 && told > 50, "{taken} were taken, {told} readings were told as damage");
}

#[tokio::test]
async fn a_row_that_breaks_the_rules_is_told_by_its_key_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leases.db");
    let store = SqliteLeaseStore::open_with_boot(&path, Arc::new(ManualClock::new()), "boot-1").unwrap();
    furnish(&store).await;
    let sql = Connection::open(&path).unwrap();
    hold(&store, async |statement| sql.execute_batch(&statement.replace('@', "")).is_ok()).await;
}

#[tokio::test]
async fn a_row_that_breaks_the_rules_is_told_by_its_key_on_postgres() {
    let schema = Schema::made(Way::Direct).await;
    let store = schema.store().await;
    furnish(&store).await;
    let place = format!("{}.", schema.name());
    hold(&store, async |statement| schema.admin.batch_execute(&statement.replace('@', &place)).await.is_ok())
        .await;
}
