//! What the table bears over time. It counts only where nothing runs beside it: any transaction on the server keeps old versions of rows
//! from being cleared away.

use leasehold_lease::{LeaseStore as _, Renewal};

use super::{
    renewals::{LONG, LOOKS_MAX, take},
    server::{Schema, Way},
};

#[tokio::test]
async fn a_thousand_rounds_of_renewals_stay_heap_only_and_do_not_grow_the_table() {
    const LEASES: usize = 200;
    const ROUNDS: i64 = 1_000;
    let schema = Schema::made(Way::Direct).await;
    let store = schema.store().await;
    let mut claims = Vec::new();
    for at in 0..LEASES {
        claims.push(take(&store, &format!("acme/t{at:04}")).await);
    }
    let size = "SELECT pg_relation_size('@.lease')";
    for _ in 0..20 {
        store.renew(&claims, LONG).await.unwrap();
    }
    let before = schema.number(size).await;
    for round in 0..ROUNDS {
        let answers = store.renew(&claims, LONG).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == Renewal::Granted), "round {round}");
    }
    let after = schema.number(size).await;
    assert!(after <= before + 16 * 8_192, "the table grew from {before} to {after} bytes");

    // A backend tells what it did when it goes, or after a while: this store's go with it.
    drop(store);
    let renewals = ROUNDS * i64::try_from(LEASES).unwrap();
    let mut told = (0, 0);
    for _ in 0..LOOKS_MAX {
        told = (
            schema.number("SELECT pg_stat_get_tuples_updated('@.lease'::regclass)").await,
            schema.number("SELECT pg_stat_get_tuples_hot_updated('@.lease'::regclass)").await,
        );
        if told.0 >= renewals {
            break;
        }
    }
    let (updated, heap_only) = told;
    assert!(updated >= renewals, "{updated} of {renewals}");
    assert!(heap_only * 100 >= updated * 99, "{heap_only} of {updated} were heap-only");
}
