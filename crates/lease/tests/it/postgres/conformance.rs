//! The contract over Postgres: two stores with pools of their own, as two processes have them.

use std::{sync::Arc, time::Duration};

use leasehold_testkit::conformance::lease::LeaseFixture;

use super::server::{Schema, Way};

async fn two_stores_in_one_schema(way: Way) -> LeaseFixture {
    let schema = Arc::new(Schema::made(way).await);
    let (store, another) = (Arc::new(schema.store().await), Arc::new(schema.store().await));
    let moved = Arc::clone(&schema);
    let advance = Box::new(move |by: Duration| moved.advance(by));
    LeaseFixture::new(store, another, advance, schema)
}

mod direct {
    use super::{LeaseFixture, Way, two_stores_in_one_schema};

    async fn fixture() -> LeaseFixture {
        two_stores_in_one_schema(Way::Direct).await
    }

    leasehold_testkit::lease_conformance!(fixture);
}

mod pooled {
    use super::{LeaseFixture, Way, two_stores_in_one_schema};

    async fn fixture() -> LeaseFixture {
        two_stores_in_one_schema(Way::Pooled).await
    }

    leasehold_testkit::lease_conformance!(fixture);
}

async fn tokens_follow_their_contract(way: Way) {
    let schema = Schema::made(way).await;
    let (store, another) = (schema.store().await, schema.store().await);
    leasehold_testkit::conformance::tokens::tokens_are_kept_two_of_a_name_until_they_end(&store, &another)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn direct_tokens_follow_their_contract() {
    tokens_follow_their_contract(Way::Direct).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pooled_tokens_follow_their_contract() {
    tokens_follow_their_contract(Way::Pooled).await;
}
