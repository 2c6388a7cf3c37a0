//! What other systems' users met, and what holds here instead, with real processes: see docs/field-notes.md.

use std::time::Duration;

use leasehold_proof::{Action, Arm, World};
use leasehold_testkit::pass;
use leasehold_types::{Act, LeaseKey, Point};

use crate::{
    process::Process,
    stage::{Stage, TIMES, until_done},
};

/// How long a call may wait that is not to be served.
const SHORT: Duration = Duration::from_millis(300);

fn key(tenant: &str) -> LeaseKey {
    format!("proof/{tenant}").parse().expect("a lease key")
}

#[tokio::test(flavor = "multi_thread")]
async fn litefs_419_no_call_is_served_before_the_image_is_in() {
    let (stage, key) = (Stage::new(World::Embedded).await.expect("a stage"), key("early"));
    let other = stage.other(&key).expect("a caller");
    let epoch = until_done("an opening", async || other.open().await).await.expect("open");
    for id in ["p-1", "p-2"] {
        other.append(id).await.expect("no breach").done().expect("appended");
    }
    other.handoff(epoch).await.expect("no breach").done().expect("handed off");

    let fetch = Point::Before(Act::OpenFetch);
    let hold = Arm { point: fetch, nth: 1, action: Action::Hold };
    let place = (&stage.world, stage.dir(), TIMES);
    let process = Process::start(place, "restoring", &key, &[hold]).await.expect("a process");
    let client = stage.client(&process.endpoint, &key).expect("a caller");
    let impatient = client.clone().with_patience(SHORT);
    assert!(!impatient.read().await.expect("no breach").is_done());
    process.until_reached(fetch).await.expect("it restores");
    // Longer than a lease runs: it is renewed while the restore is under way.
    pass(TIMES.ttl * 2).await;
    assert!(!impatient.read().await.expect("no breach").is_done());
    assert!(!impatient.append("early").await.expect("no breach").is_done());
    assert!(!other.clone().with_patience(SHORT).read().await.expect("no breach").is_done());
    process.go().await.expect("it is told");

    let (by, served) = until_done("a history", async || client.read().await).await.expect("it is served");
    assert_eq!((by.get(), served), (epoch.get() + 1, vec!["p-1".to_owned(), "p-2".to_owned()]));
    process.ended(false).await.expect("it is taken away");
}

#[tokio::test(flavor = "multi_thread")]
async fn libsql_686_an_outage_of_the_store_and_then_a_crash_cost_the_declared_tail() {
    let (stage, key) = (Stage::new(World::Embedded).await.expect("a stage"), key("outage"));
    let place = (&stage.world, stage.dir(), TIMES);
    let process = Process::start(place, "crashing", &key, &[]).await.expect("a process");
    let client = stage.client(&process.endpoint, &key).expect("a caller");
    client.open().await.expect("no breach").done().expect("open");
    client.append("u-0").await.expect("no breach").done().expect("appended");
    client.snapshot().await.expect("no breach").done().expect("published");
    let outage = Arm { point: Point::Before(Act::PublishUpload), nth: 1, action: Action::BlobsDown };
    process.arm(outage).await.expect("armed");

    let tail: Vec<String> = (1..=40).map(|number| format!("u-{number}")).collect();
    for id in &tail[..20] {
        client.append(id).await.expect("no breach").done().expect("a store that is away stops no write");
    }
    assert!(!client.snapshot().await.expect("no breach").is_done(), "and is told where it is asked for");
    for id in &tail[20..] {
        client.append(id).await.expect("no breach").done().expect("nor after it");
    }
    process.ended(false).await.expect("it is taken away");

    let other = stage.other(&key).expect("a caller");
    until_done("an opening", async || other.open().await).await.expect("open");
    let (_, served) = until_done("a history", async || other.read().await).await.expect("served");
    assert_eq!(served, ["u-0"], "what was published");
    let mut lost: Vec<_> = stage.recorder.lost(&key).into_iter().map(|lost| lost.position.seq).collect();
    lost.sort_unstable();
    assert_eq!(lost, (2..=41).collect::<Vec<_>>(), "and no more than the declared tail is gone");
}
