//! A panic is its own request's: who waits is answered, nobody else notices, and nobody is told what it said.

use std::sync::Arc;

use leasehold_blob::BlobStore;
use leasehold_lease::LeaseStore;
use leasehold_server::{Edges, Stores, watch_panics};
use leasehold_testkit::{BlobOp, FaultyBlobs, FaultyLeases, LeaseOp};

use crate::served::{Served, config_in, eventually, path_of, soon};

const TENANT: &str = "acme/user-1";
const SAID: &str = "what another caller sent";

#[expect(clippy::unused_async, reason = "what is handed to a faulty store is a future")]
async fn panics() {
    panic!("{SAID}");
}

#[tokio::test]
async fn a_panic_in_a_handler_and_one_in_a_task_of_a_tenant_end_their_requests_alone() {
    watch_panics();
    let dir = tempfile::tempdir().unwrap();
    let config = config_in(dir.path());
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let (blobs, leases) = (FaultyBlobs::new(stores.blobs), FaultyLeases::new(stores.leases));
    let stores = Stores {
        blobs: Arc::new(blobs.clone()) as Arc<dyn BlobStore>,
        leases: Arc::new(leases.clone()) as Arc<dyn LeaseStore>,
        tokens: stores.tokens,
    };
    let served = Served::start_on(config, stores).await;
    served.append(TENANT, "a").await;
    assert_eq!(served.metric("leasehold_panics_total").await, 0);

    // In the handler itself: the status of a tenant that nobody holds is read from the store.
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    leases.after_next(LeaseOp::Read, || Box::pin(panics()));
    let broken = soon("the answer", served.get(&path_of(TENANT))).await;
    let problem = broken.problem(500, "internal");
    assert_eq!(problem["executed"], "unknown");
    assert!(!problem.to_string().contains(SAID), "{problem}");
    assert_eq!(served.metric("leasehold_panics_total").await, 1);
    assert_eq!(served.kinds(TENANT).await, ["a"]);

    // In a task of the tenant's: the upload that a snapshot asks for.
    served.append(TENANT, "b").await;
    blobs.before_next(BlobOp::Put, |_| true, || Box::pin(panics()));
    let broken = soon("the answer", served.post(&format!("{}/snapshot", path_of(TENANT)))).await;
    assert!(broken.status.is_server_error(), "{}", broken.status);
    assert!(!String::from_utf8_lossy(&broken.body).contains(SAID));
    assert_eq!(served.metric("leasehold_panics_total").await, 2);
    served.append(TENANT, "c").await;
    served.append("acme/user-2", "a").await;
    assert_eq!(served.kinds(TENANT).await, ["a", "b", "c"]);
    soon("the handoff", served.post(&format!("{}/handoff", path_of(TENANT)))).await.ok(200);
    assert_eq!(served.kinds(TENANT).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_panic_in_what_a_replica_does_all_the_time_is_no_end_of_it() {
    watch_panics();
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    config.ttl = std::time::Duration::from_secs(3);
    config.margin = std::time::Duration::from_secs(1);
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let leases = FaultyLeases::new(Arc::clone(&stores.leases));
    let stores = Stores { leases: Arc::new(leases.clone()) as Arc<dyn LeaseStore>, ..stores };
    let served = Served::start_on(config, stores.clone()).await;
    served.append(TENANT, "a").await;

    // Announcing, and once more: it was begun again.
    for count in 1..=2 {
        leases.after_next(LeaseOp::Announce, || Box::pin(panics()));
        eventually("it panics", async || served.metric("leasehold_panics_total").await == count).await;
    }
    assert_eq!(served.kinds(TENANT).await, ["a"]);

    // Handing off: the drain's own announcement.
    let heard = leases.calls(LeaseOp::Announce);
    leases.until_calls(LeaseOp::Announce, heard + 1).await;
    leases.after_next(LeaseOp::Announce, || Box::pin(panics()));
    soon("the end", served.stop()).await.unwrap();
    let row = stores.leases.read(&TENANT.parse().unwrap()).await.unwrap().unwrap();
    assert!(row.owner.is_none(), "it was handed off all the same");
}
