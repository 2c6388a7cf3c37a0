//! An object store that ends or stands still in the middle of an image, of a manifest, of a restore, and comes back.

use leasehold_services::{Azurite, OwnServers, Stop};
use leasehold_tenure::Handle;
use leasehold_testkit::{
    CloudPair, CloudServers, Cue, Fault, FaultProxy, Fleet, PATIENCE, Planned, Replica, by_code, eventually,
    insert, keys_of, tenant, try_insert, within,
};
use leasehold_types::{ErrorCode, LeaseKey};

use super::stage::{behind_a_network, blocking, insert_noise, long_limits, short_limits};

/// More than two of the blocks in which an image goes, and of the ranges in which it comes.
const IMAGE_MIB: u32 = 18;

/// What becomes of the server.
#[derive(Clone, Copy, Debug)]
enum Outage {
    /// Killed, and started again later.
    Killed,
    /// Stopped, connections and all, and let go on later.
    Paused,
}

/// A fleet in hand-moved time over an Azurite of its own, behind a network.
struct Stage {
    fleet: Fleet<CloudPair>,
    proxy: FaultProxy,
    azurite: Azurite,
    outage: Outage,
    key: LeaseKey,
    a: Replica,
}

impl Stage {
    /// `a` has the tenant open, with a published past and an image's worth of what is not published.
    async fn begun(test: &str, outage: Outage) -> (Self, Handle) {
        let own = OwnServers::of(test).expect("a place for servers");
        let azurite = own.azurite().expect("an Azurite of its own");
        let postgres = CloudServers::of_the_run().postgres;
        // Before a kill the moment lasts until the server has written what it has answered for.
        let limits = match outage {
            Outage::Killed => long_limits(),
            Outage::Paused => short_limits(),
        };
        let (proxy, servers) =
            behind_a_network(postgres, &azurite.connection_string(), azurite.addr(), limits).await;
        let fleet = Fleet::manual_over(CloudPair::manual_at(&servers).await).await;
        let (a, key) = (replica(&fleet, "a"), tenant(test));
        let handle = a.router.open(&key).await.expect("a opens");
        insert(&handle, "k-1");
        within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
        insert_noise(&handle, IMAGE_MIB);
        insert(&handle, "k-2");
        (Self { fleet, proxy, azurite, outage, key, a }, handle)
    }

    /// The server goes away, having kept what it has answered for.
    async fn goes_away(&mut self, expected: usize) {
        match self.outage {
            Outage::Paused => self.azurite.server().pause(),
            Outage::Killed => {
                let names = self.fleet.stored_of(&self.key).await;
                assert_eq!(names.len(), expected, "{names:?}");
                eventually(PATIENCE, "Azurite has written what it has answered for", || async {
                    names.iter().all(|name| self.azurite.has_saved(name))
                })
                .await;
                blocking(|| self.azurite.server().stop(Stop::Kill)).expect("it is gone");
                // Its connections end with it, one whose answer is held too.
                self.proxy.cut();
            }
        }
    }

    fn comes_back(&mut self) {
        match self.outage {
            Outage::Paused => self.azurite.server().go_on(),
            Outage::Killed => blocking(|| self.azurite.server().start_again()).expect("it is back"),
        }
    }

    /// The handoff that meets `planned`, while the server goes away, fails with the store's own error; the tenant serves on; a later handoff
    /// succeeds, and a successor reads everything.
    async fn handoff_meets(mut self, handle: Handle, planned: Planned, stored: usize) {
        let handoff = tokio::spawn(handle.handoff());
        within(PATIENCE, "the moment", planned.met()).await;
        self.goes_away(stored).await;
        let failed = within(PATIENCE, "the handoff", handoff).await.expect("no panic");
        assert_eq!(by_code(failed), Err(ErrorCode::BlobStoreUnavailable));
        insert(&handle, "k-3");
        assert_eq!(keys_of(&handle), ["k-1", "k-2", "k-3"]);
        assert!(!self.a.events.released_flushed(&self.key));

        self.comes_back();
        planned.release();
        within(PATIENCE, "the later handoff", handle.handoff()).await.expect("handed off");
        self.successor_reads(&["k-1", "k-2", "k-3"]).await;
    }

    async fn successor_reads(&self, expected: &[&str]) {
        let next = replica(&self.fleet, "next").router.open(&self.key).await.expect("a successor opens");
        assert_eq!(
            (next.epoch().get(), keys_of(&next)),
            (2, expected.iter().map(ToString::to_string).collect())
        );
        assert_eq!(noise_of(&next), i64::from(IMAGE_MIB) << 20);
    }
}

/// A replica that leaves limits and repetitions to the store.
fn replica(fleet: &Fleet<CloudPair>, id: &str) -> Replica {
    fleet.replica_with(id, |options| {
        options.snapshot.call_limit = long_limits().patience;
        options.snapshot.retry.tries = 1;
    })
}

/// How many bytes of noise there are, all of them read.
fn noise_of(handle: &Handle) -> i64 {
    let sum = |view: &mut leasehold_ledger::View<'_>| {
        view.query("SELECT sum(length(CAST(hex(body) AS BLOB)) / 2) FROM noise", &[])
    };
    match handle.run(sum).expect("read").rows[0][0] {
        leasehold_ledger::Value::Integer(bytes) => bytes,
        ref other => panic!("{other:?}"),
    }
}

async fn in_the_middle_of_an_image(test: &str, outage: Outage) {
    let (stage, handle) = Stage::begun(test, outage).await;
    // Half of the second block.
    let planned = stage.proxy.plan(Cue::request("comp=block").after(1), Fault::HoldRequest(4 << 20));
    stage.handoff_meets(handle, planned, 3).await;
}

async fn in_the_middle_of_a_manifest(test: &str, outage: Outage) {
    let (stage, handle) = Stage::begun(test, outage).await;
    let planned = stage.proxy.plan(Cue::request("snap-000002.json"), Fault::HoldRequest(40));
    stage.handoff_meets(handle, planned, 4).await;
}

async fn behind_a_manifest(test: &str, outage: Outage) {
    let (stage, handle) = Stage::begun(test, outage).await;
    // It is there, and nobody knows.
    let planned = stage.proxy.plan(Cue::request("snap-000002.json"), Fault::HoldAnswer);
    stage.handoff_meets(handle, planned, 5).await;
}

async fn in_the_middle_of_a_restore(test: &str, outage: Outage) {
    let (mut stage, handle) = Stage::begun(test, outage).await;
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    let b = replica(&stage.fleet, "b");
    // The first range is here, and half of the second.
    let planned = stage.proxy.plan(Cue::request("bytes=8388608-"), Fault::HoldAnswer);
    let (router, key) = (b.router.clone(), stage.key.clone());
    let opening = tokio::spawn(async move { router.open(&key).await.map(drop) });
    within(PATIENCE, "the moment", planned.met()).await;
    let stored = stage.fleet.stored_of(&stage.key).await.len();
    stage.goes_away(stored).await;
    let failed = within(PATIENCE, "the open", opening).await.expect("no panic");
    assert_eq!(by_code(failed), Err(ErrorCode::BlobStoreUnavailable));
    assert!(!b.ledger_file(&stage.key).exists(), "nothing is served from half an image");
    assert!(b.router.handle_of(&stage.key).is_none());

    stage.comes_back();
    planned.release();
    let next = b.router.open(&stage.key).await.expect("the next open succeeds");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
    assert_eq!(noise_of(&next), i64::from(IMAGE_MIB) << 20);
    assert_eq!(try_insert(&next, "k-3"), Ok(()));
}

macro_rules! each_outage {
    ($($moment:ident: $killed:ident $paused:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $killed() {
                $moment(&stringify!($killed).replace('_', "-"), Outage::Killed).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $paused() {
                $moment(&stringify!($paused).replace('_', "-"), Outage::Paused).await;
            }
        )*
    };
}

each_outage! {
    in_the_middle_of_an_image: killed_in_the_middle_of_an_image paused_in_the_middle_of_an_image,
    in_the_middle_of_a_manifest: killed_in_the_middle_of_a_manifest paused_in_the_middle_of_a_manifest,
    behind_a_manifest: killed_behind_a_manifest paused_behind_a_manifest,
    in_the_middle_of_a_restore: killed_in_the_middle_of_a_restore paused_in_the_middle_of_a_restore,
}
