//! Opens, writes and handoffs for long (field note tursodatabase/libsql#1781: memory grew until a restart).

use leasehold_proof::soak::Footprint;
use leasehold_tenure::Json;
use leasehold_testkit::{EmbeddedPair, Fleet, event, keys_of, tenant};

const ROUNDS: usize = 8;
const LIVES: usize = 40;
/// How much the rounds after the second may add: what an allocator keeps for itself, and far below what they handle.
const GROWTH_KIB_MAX: u64 = 12 << 10;

#[tokio::test]
async fn libsql_1781_memory_and_descriptors_stay_flat_over_opens_writes_and_handoffs() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let replicas = [fleet.replica("a"), fleet.replica("b")];
    let payload = format!("\"{}\"", "x".repeat(64 << 10));
    let mut footprints = Vec::new();
    for round in 0..ROUNDS {
        let key = tenant(&format!("churned-{round}"));
        for life in 0..LIVES {
            let replica = &replicas[life % 2];
            let handle = replica.router.open(&key).await.expect("nobody else holds it");
            let mut large = event(&format!("k-{life}"));
            large.payload = Json::parse(&payload).expect("a text");
            handle.append(vec![large]).await.expect("it is open");
            handle.handoff().await.expect("nothing is wrong");
            handle.ended().await;
            replica.events.clear();
        }
        let last = replicas[0].router.open(&key).await.expect("nobody else holds it");
        assert_eq!(keys_of(&last).len(), LIVES);
        replicas[0].router.forget(&key).await.expect("nothing is wrong");
        fleet.blobs().clear_calls();
        footprints.push(Footprint::now().expect("this process's own numbers"));
    }
    let (warm, end) = (footprints[1], footprints[ROUNDS - 1]);
    let grown = end.resident_kib.saturating_sub(warm.resident_kib);
    assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB more after {} lives: {footprints:?}", (ROUNDS - 2) * LIVES);
    assert_eq!(end.descriptors, warm.descriptors, "{footprints:?}");
}
