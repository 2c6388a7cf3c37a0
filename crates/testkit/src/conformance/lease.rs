//! What every lease store does: [`LeaseStore`]'s contract, a behaviour at a time.
//!
//! A backend runs all of it by [`lease_conformance!`](crate::lease_conformance).

use std::{any::Any, fmt, sync::Arc, time::Duration};

use futures::future::{BoxFuture, join_all};
use leasehold_lease::{
    Acquisition, Announced, Announcement, Claim, Grant, Holder, LeaseRow, LeaseStore, Recheck, Renewal,
};
use leasehold_types::{Epoch, Floor, LeaseKey, TenureId};
use uuid::Uuid;

pub use super::lease_model::any_sequence_of_calls_follows_the_rules;

/// Moves a store's time onwards.
pub type Advance = Box<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// A fresh, empty store and what a behaviour needs beside it.
pub struct LeaseFixture {
    /// The store.
    pub store: Arc<dyn LeaseStore>,
    /// A second, independent way into the same store, as another process has it.
    pub another: Arc<dyn LeaseStore>,
    advance: Advance,
    _keeps: Box<dyn Any + Send + Sync>,
}

impl LeaseFixture {
    /// A fixture that drops `keeps` (a directory, a schema) when it ends.
    #[must_use]
    pub fn new(
        store: Arc<dyn LeaseStore>,
        another: Arc<dyn LeaseStore>,
        advance: Advance,
        keeps: impl Any + Send + Sync,
    ) -> Self {
        Self { store, another, advance, _keeps: Box::new(keeps) }
    }

    pub(super) async fn advance(&self, by: Duration) {
        (self.advance)(by).await;
    }

    async fn ask(&self, name: &str, replica: &str, tenure: u128) -> Acquisition {
        let replica = replica.parse().expect("a replica id");
        self.store.acquire(&key(name), &replica, tenure_id(tenure), TTL).await.expect("an acquisition")
    }

    async fn take(&self, name: &str, replica: &str, tenure: u128) -> Claim {
        match self.ask(name, replica, tenure).await {
            Acquisition::Granted(grant) => claim(name, replica, tenure, grant.epoch.get()),
            other => panic!("{name} is held by {other:?}"),
        }
    }

    async fn row(&self, name: &str) -> LeaseRow {
        self.another.read(&key(name)).await.expect("a read").expect("a row")
    }

    async fn renew(&self, claims: &[Claim]) -> Vec<Renewal> {
        self.store.renew(claims, TTL).await.expect("a renewal")
    }

    async fn due(&self) -> Vec<Recheck> {
        self.another.due_rechecks(100).await.expect("a listing of due rechecks")
    }

    async fn listed(&self, after: Option<&str>, limit: u32) -> Vec<String> {
        let after = after.map(|tenant| tenant.parse().expect("a tenant id"));
        let org = "acme".parse().expect("an organization");
        let rows = self.another.list(&org, after.as_ref(), limit).await.expect("a listing");
        rows.into_iter().map(|row| row.key.to_string()).collect()
    }
}

impl fmt::Debug for LeaseFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseFixture").field("store", &self.store).finish_non_exhaustive()
    }
}

const TTL: Duration = Duration::from_secs(10);
/// What a store whose clock cannot be stopped may be away from a time that was named.
const SLACK: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(1);

fn key(name: &str) -> LeaseKey {
    name.parse().expect("a lease key")
}

fn tenure_id(number: u128) -> TenureId {
    TenureId::new(Uuid::from_u128(number))
}

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).expect("an epoch")
}

fn floor(number: u64) -> Floor {
    Floor::new(number).expect("a floor")
}

fn claim(name: &str, replica: &str, tenure: u128, at: u64) -> Claim {
    let replica = replica.parse().expect("a replica id");
    Claim { key: key(name), replica, tenure: tenure_id(tenure), epoch: epoch(at) }
}

fn granted(at: u64) -> Acquisition {
    Acquisition::Granted(Grant { epoch: epoch(at), floor: Floor::NONE })
}

fn announcement(replica: &str, instance: u128, endpoint: Option<&str>) -> Announcement {
    Announcement {
        replica: replica.parse().expect("a replica id"),
        instance: Uuid::from_u128(instance),
        endpoint: endpoint.map(Into::into),
        draining: false,
        open_tenants: 3,
    }
}

fn near(time: Duration, to: Duration) -> bool {
    time <= to + SLACK && time + SLACK >= to
}

/// A tenant that nobody ever had starts in epoch 1, and its row says who has it.
pub async fn a_fresh_lease_is_granted_in_the_first_epoch(fixture: &LeaseFixture) {
    assert_eq!(fixture.another.read(&key("acme/t")).await.expect("a read"), None);
    assert_eq!(fixture.ask("acme/t", "a", 1).await, granted(1));
    let row = fixture.row("acme/t").await;
    assert!(row.is_of(&claim("acme/t", "a", 1, 1)) && !row.is_forgotten());
    assert_eq!((row.floor, row.forgotten_at, row.receipt), (Floor::NONE, None, None));
    assert!(near(row.owner.expect("an owner").remaining, TTL));
}

/// Asking for a held lease tells who holds it, where that one answers and for how long, and changes nothing.
pub async fn a_held_lease_tells_its_holder_and_stays_as_it_is(fixture: &LeaseFixture) {
    let holder = fixture.take("acme/t", "a", 1).await;
    let said = announcement("a", 7, Some("http://a:1"));
    fixture.store.announce(&said, TTL, false).await.expect("an announcement");
    fixture.advance(4 * SECOND).await;
    match fixture.ask("acme/t", "b", 2).await {
        Acquisition::Held(Holder { replica, endpoint, epoch: at, remaining }) => {
            assert_eq!((replica.as_str(), endpoint.as_deref(), at), ("a", Some("http://a:1"), epoch(1)));
            assert!(remaining < TTL && near(remaining, 6 * SECOND), "{remaining:?}");
        }
        other => panic!("a held lease was answered {other:?}"),
    }
    let row = fixture.row("acme/t").await;
    assert!(row.is_of(&holder));
    assert!(row.owner.expect("an owner").remaining < TTL, "the refused call did not prolong it");
}

/// A lease that ran out is taken over in the next epoch; what its old owner claims is refused from then on.
pub async fn a_lease_that_ran_out_is_taken_over_in_the_next_epoch(fixture: &LeaseFixture) {
    let old = fixture.take("acme/t", "a", 1).await;
    fixture.advance(TTL + SECOND).await;
    assert!(fixture.row("acme/t").await.is_of(&old), "it is its own until somebody takes it");
    assert_eq!(fixture.ask("acme/t", "b", 2).await, granted(2));
    assert_eq!(fixture.renew(std::slice::from_ref(&old)).await, [Renewal::Refused]);
    assert!(!fixture.store.release(&old).await.expect("a release"));
    assert!(fixture.row("acme/t").await.is_of(&claim("acme/t", "b", 2, 2)));
}

/// The same attempt gets the same grant again, lapsed or not: that is how a lost answer is adopted.
pub async fn a_repeated_attempt_adopts_its_grant(fixture: &LeaseFixture) {
    assert_eq!(fixture.ask("acme/t", "a", 1).await, granted(1));
    fixture.advance(6 * SECOND).await;
    assert_eq!(fixture.ask("acme/t", "a", 1).await, granted(1));
    let remaining = fixture.row("acme/t").await.owner.expect("an owner").remaining;
    assert!(near(remaining, TTL), "the adopted grant runs from now on: {remaining:?}");
    fixture.advance(TTL + SECOND).await;
    assert_eq!(fixture.ask("acme/t", "a", 1).await, granted(1), "lapsed, and still its own");
    assert!(matches!(fixture.ask("acme/t", "b", 2).await, Acquisition::Held(_)));
}

/// Another attempt of the same replica is another owner, whose lease is waited out: a restarted process has nothing of the old one's.
pub async fn another_attempt_of_the_same_replica_waits(fixture: &LeaseFixture) {
    fixture.take("acme/t", "a", 1).await;
    assert!(matches!(fixture.ask("acme/t", "a", 2).await, Acquisition::Held(_)));
    fixture.advance(TTL + SECOND).await;
    assert_eq!(fixture.ask("acme/t", "a", 2).await, granted(2));
}

/// One call renews many claims and answers in their order.
pub async fn a_batch_is_renewed_and_answered_in_its_order(fixture: &LeaseFixture) {
    let c = fixture.take("acme/c", "a", 1).await;
    let a = fixture.take("acme/a", "a", 2).await;
    let other = fixture.take("acme/b", "b", 3).await;
    let missing = claim("acme/none", "a", 4, 1);
    let stolen = claim("acme/b", "a", 3, 1);
    let elsewhen = claim("acme/a", "a", 2, 2);
    let retried = claim("acme/a", "a", 9, 1);
    fixture.advance(5 * SECOND).await;
    let batch = [c, missing, a, stolen, elsewhen, retried, other.clone()];
    let answers = fixture.renew(&batch).await;
    let expected = [true, false, true, false, false, false, true];
    assert_eq!(answers, expected.map(|held| if held { Renewal::Granted } else { Renewal::Refused }));
    for name in ["acme/a", "acme/b", "acme/c"] {
        let remaining = fixture.row(name).await.owner.expect("an owner").remaining;
        assert!(near(remaining, TTL), "{name} {remaining:?}");
    }
    assert_eq!(fixture.another.read(&key("acme/none")).await.expect("a read"), None);
    assert_eq!(fixture.renew(&[]).await, []);
}

/// More claims than one statement carries are renewed all the same.
pub async fn a_large_batch_is_renewed(fixture: &LeaseFixture) {
    let mut claims = vec![claim("acme/none", "a", 1, 1); 2_345];
    claims[0] = fixture.take("acme/first", "a", 1).await;
    claims[2_344] = fixture.take("acme/last", "a", 2).await;
    let answers = fixture.renew(&claims).await;
    assert_eq!(answers.len(), claims.len());
    let held: Vec<usize> = (0..answers.len()).filter(|at| answers[*at] == Renewal::Granted).collect();
    assert_eq!(held, [0, 2_344]);
}

/// A lease that ran out is renewed as long as nobody took it, and not afterwards.
pub async fn a_lapsed_lease_is_renewed_until_somebody_took_it(fixture: &LeaseFixture) {
    let mine = fixture.take("acme/t", "a", 1).await;
    fixture.advance(10 * TTL).await;
    assert_eq!(fixture.row("acme/t").await.owner.expect("an owner").remaining, Duration::ZERO);
    assert_eq!(fixture.renew(std::slice::from_ref(&mine)).await, [Renewal::Granted]);
    assert!(matches!(fixture.ask("acme/t", "b", 2).await, Acquisition::Held(_)), "it runs again");
    fixture.advance(TTL + SECOND).await;
    fixture.take("acme/t", "b", 2).await;
    assert_eq!(fixture.renew(&[mine]).await, [Renewal::Refused]);
}

/// A released lease is free at once, its epoch stays used, and it is released once.
pub async fn a_released_lease_is_free_at_once_and_its_epoch_is_used(fixture: &LeaseFixture) {
    let mine = fixture.take("acme/t", "a", 1).await;
    assert!(fixture.store.release(&mine).await.expect("a release"));
    let row = fixture.row("acme/t").await;
    assert_eq!((row.owner, row.epoch), (None, epoch(1)));
    assert!(!fixture.store.release(&mine).await.expect("a release"), "it was released before");
    assert_eq!(fixture.renew(std::slice::from_ref(&mine)).await, [Renewal::Refused]);
    assert_eq!(fixture.ask("acme/t", "a", 1).await, granted(2), "even for the same attempt");
    assert!(!fixture.store.release(&mine).await.expect("a release"), "the old epoch's claim is nothing");
}

/// The floor is raised by the holder alone, to its epoch, and never falls.
pub async fn the_floor_is_raised_by_the_holder_and_never_falls(fixture: &LeaseFixture) {
    let old = fixture.take("acme/t", "a", 1).await;
    fixture.advance(TTL + SECOND).await;
    let mine = fixture.take("acme/t", "b", 2).await;
    assert_eq!(fixture.store.raise_floor(&old, TTL).await.expect("an answer"), None);
    let row = fixture.row("acme/t").await;
    assert_eq!((row.floor, row.forgotten_at), (Floor::NONE, None), "a refusal changes nothing");

    assert_eq!(fixture.store.raise_floor(&mine, TTL).await.expect("an answer"), Some(floor(2)));
    assert_eq!(fixture.store.raise_floor(&mine, TTL).await.expect("an answer"), Some(floor(2)), "repeated");
    let row = fixture.row("acme/t").await;
    assert!(row.is_forgotten() && row.is_of(&mine) && row.forgotten_at.is_some());

    assert!(fixture.store.release(&mine).await.expect("a release"));
    let next = Grant { epoch: epoch(3), floor: floor(2) };
    assert_eq!(fixture.ask("acme/t", "c", 3).await, Acquisition::Granted(next), "a grant tells the floor");
    assert!(!fixture.row("acme/t").await.is_forgotten(), "something may be served again");
    assert_eq!(fixture.store.raise_floor(&mine, TTL).await.expect("an answer"), None);
    assert_eq!(fixture.row("acme/t").await.floor, floor(2));
    let third = claim("acme/t", "c", 3, 3);
    assert_eq!(fixture.store.raise_floor(&third, TTL).await.expect("an answer"), Some(floor(3)));
}

/// A receipt is kept until the next forget begins, and outlives the release.
pub async fn a_receipt_is_kept_until_the_next_forget(fixture: &LeaseFixture) {
    let mine = fixture.take("acme/t", "a", 1).await;
    let store = &fixture.store;
    assert!(!store.store_receipt(&mine, "early").await.expect("an answer"), "nothing was forgotten");
    store.raise_floor(&mine, TTL).await.expect("an answer");
    assert!(store.store_receipt(&mine, "{\"floor\":1}").await.expect("an answer"));
    assert!(!store.store_receipt(&claim("acme/t", "a", 2, 1), "x").await.expect("an answer"));
    assert!(store.release(&mine).await.expect("a release"));
    assert!(!store.store_receipt(&mine, "late").await.expect("an answer"), "it is not this claim's any more");
    assert_eq!(fixture.row("acme/t").await.receipt.as_deref(), Some("{\"floor\":1}"));

    let next = fixture.take("acme/t", "b", 2).await;
    assert_eq!(fixture.row("acme/t").await.receipt.as_deref(), Some("{\"floor\":1}"));
    store.raise_floor(&next, TTL).await.expect("an answer");
    assert_eq!(fixture.row("acme/t").await.receipt, None);
}

/// A paused tenant is given to nobody, by no way into the store; its holder keeps it, and so does the row until it is resumed.
pub async fn a_paused_tenant_is_given_to_nobody_until_it_is_resumed(fixture: &LeaseFixture) {
    let store = &fixture.store;
    assert_eq!(store.pause(&key("acme/t")).await.expect("an answer"), None, "nobody ever had it");
    assert_eq!(fixture.another.read(&key("acme/t")).await.expect("a read"), None);
    let mine = fixture.take("acme/t", "a", 1).await;
    assert_eq!(store.pause(&mine.key).await.expect("an answer"), Some(true));
    let since = fixture.row("acme/t").await.paused_at.expect("a pause");
    fixture.advance(SECOND).await;
    assert_eq!(
        fixture.another.pause(&mine.key).await.expect("an answer"),
        Some(false),
        "it is paused already"
    );
    assert_eq!(fixture.row("acme/t").await.paused_at, Some(since), "since the first time");

    assert_eq!(fixture.renew(std::slice::from_ref(&mine)).await, [Renewal::Granted], "its holder keeps it");
    assert_eq!(fixture.ask("acme/t", "a", 1).await, granted(1), "and adopts what it was given");
    assert!(matches!(fixture.ask("acme/t", "b", 2).await, Acquisition::Held(_)));
    fixture.advance(TTL + SECOND).await;
    assert_eq!(fixture.ask("acme/t", "b", 2).await, Acquisition::Paused { since }, "though it ran out");
    assert!(store.release(&mine).await.expect("a release"));
    for _ in 0..2 {
        assert_eq!(fixture.ask("acme/t", "b", 2).await, Acquisition::Paused { since });
    }
    let row = fixture.row("acme/t").await;
    assert_eq!((row.epoch, row.owner), (epoch(1), None), "a refusal changes nothing");

    assert!(fixture.another.resume(&mine.key).await.expect("an answer"));
    assert!(!store.resume(&mine.key).await.expect("an answer"), "it was resumed before");
    assert!(!store.resume(&key("acme/none")).await.expect("an answer"));
    assert_eq!(fixture.row("acme/t").await.paused_at, None);
    assert_eq!(fixture.ask("acme/t", "b", 2).await, granted(2));
}

/// A paused tenant is acquired to be forgotten, and the pause ends with what it held still.
pub async fn a_paused_tenant_is_forgotten_and_not_paused_afterwards(fixture: &LeaseFixture) {
    let store = &fixture.store;
    let old = fixture.take("acme/t", "a", 1).await;
    store.pause(&old.key).await.expect("an answer");
    let forgetter = "b".parse().expect("a replica id");
    let asked = store.acquire_to_forget(&old.key, &forgetter, tenure_id(2), TTL).await.expect("an answer");
    assert!(matches!(asked, Acquisition::Held(_)), "it is waited out all the same: {asked:?}");
    assert!(store.release(&old).await.expect("a release"));
    let asked = store.acquire_to_forget(&old.key, &forgetter, tenure_id(2), TTL).await.expect("an answer");
    assert_eq!(asked, granted(2));
    assert!(fixture.row("acme/t").await.paused_at.is_some(), "nothing is forgotten yet");
    let mine = claim("acme/t", "b", 2, 2);
    assert_eq!(store.raise_floor(&mine, TTL).await.expect("an answer"), Some(floor(2)));
    assert_eq!(fixture.row("acme/t").await.paused_at, None);
    assert!(store.release(&mine).await.expect("a release"));
    let next = Grant { epoch: epoch(3), floor: floor(2) };
    assert_eq!(fixture.ask("acme/t", "c", 3).await, Acquisition::Granted(next));
}

/// The epoch is advanced by the holder alone, past what it names and past itself.
pub async fn an_epoch_is_advanced_by_its_holder_and_only_rises(fixture: &LeaseFixture) {
    let mine = fixture.take("acme/t", "a", 1).await;
    let store = &fixture.store;
    let stranger = claim("acme/t", "b", 1, 1);
    assert_eq!(store.advance_epoch(&stranger, epoch(5)).await.expect("an answer"), None);
    assert_eq!(fixture.row("acme/t").await.epoch, epoch(1), "a refusal changes nothing");

    assert_eq!(store.advance_epoch(&mine, epoch(5)).await.expect("an answer"), Some(epoch(6)));
    assert_eq!(store.advance_epoch(&mine, epoch(9)).await.expect("an answer"), None, "its epoch is 6 now");
    let mine = Claim { epoch: epoch(6), ..mine };
    let row = fixture.row("acme/t").await;
    assert!(row.is_of(&mine) && near(row.owner.expect("an owner").remaining, TTL));
    assert_eq!(store.advance_epoch(&mine, epoch(2)).await.expect("an answer"), Some(epoch(7)));
    let mine = Claim { epoch: epoch(7), ..mine };
    assert_eq!(fixture.ask("acme/t", "a", 1).await, granted(7), "a lost answer is adopted by acquiring");
    assert!(store.release(&mine).await.expect("a release"));
    assert_eq!(fixture.ask("acme/t", "b", 2).await, granted(8));
}

/// At the last epoch a lease goes on but passes to nobody: the number never starts again.
pub async fn the_last_epoch_is_the_last(fixture: &LeaseFixture) {
    let mine = fixture.take("acme/t", "a", 1).await;
    let before_last = epoch(Epoch::MAX.get() - 1);
    let last = fixture.store.advance_epoch(&mine, before_last).await.expect("an answer");
    assert_eq!(last, Some(Epoch::MAX));
    let mine = Claim { epoch: Epoch::MAX, ..mine };
    assert_eq!(fixture.renew(std::slice::from_ref(&mine)).await, [Renewal::Granted]);
    let error = fixture.store.advance_epoch(&mine, epoch(1)).await.expect_err("no epoch is left");
    assert_eq!(error.code().as_str(), "damaged");
    fixture.store.release(&mine).await.expect("a release");
    let replica = "b".parse().expect("a replica id");
    let answer = fixture.store.acquire(&key("acme/t"), &replica, tenure_id(2), TTL).await;
    assert_eq!(answer.expect_err("no epoch is left").code().as_str(), "damaged");
    assert_eq!(fixture.row("acme/t").await.epoch, Epoch::MAX);
}

/// An organization's rows are listed in pages, in the order of their tenants, and no other's are.
pub async fn an_organization_is_listed_in_pages(fixture: &LeaseFixture) {
    let names = ["acme/a", "acme/b", "acme/b-1", "acme/c", "acme/z"];
    for (at, name) in names.iter().enumerate().rev() {
        fixture.take(name, "a", at as u128).await;
    }
    for neighbour in ["acm/x", "acme-2/x", "acme2/x", "acme_/x", "acmf/x"] {
        fixture.take(neighbour, "a", 99).await;
    }
    assert_eq!(fixture.listed(None, 100).await, names);
    assert_eq!(fixture.listed(None, 2).await, names[..2]);
    assert_eq!(fixture.listed(Some("b"), 2).await, names[2..4]);
    assert_eq!(fixture.listed(Some("bb"), 2).await, names[3..], "after one that is not there");
    assert!(fixture.listed(Some("z"), 2).await.is_empty() && fixture.listed(None, 0).await.is_empty());
}

/// A forgotten tenant comes up for its rechecks in time, and each is taken by one replica.
pub async fn a_recheck_comes_up_when_it_is_due_and_is_taken_once(fixture: &LeaseFixture) {
    let mine = fixture.take("acme/t", "a", 1).await;
    fixture.take("acme/kept", "a", 2).await;
    fixture.store.raise_floor(&mine, 100 * SECOND).await.expect("an answer");
    assert!(fixture.due().await.is_empty(), "not yet");
    fixture.advance(101 * SECOND).await;
    let due = fixture.due().await;
    let [recheck] = due.as_slice() else { panic!("one is due, not {due:?}") };
    assert_eq!((&recheck.key, recheck.floor), (&mine.key, floor(1)));
    assert_eq!(recheck.due_at.since(recheck.forgotten_at), 100 * SECOND);
    assert!(fixture.another.due_rechecks(0).await.expect("a listing").is_empty());

    let again = Some(200 * SECOND);
    let taken =
        join_all([&fixture.store, &fixture.another].map(|store| store.schedule_recheck(recheck, again)))
            .await;
    let taken: Vec<bool> = taken.into_iter().map(|taken| taken.expect("an answer")).collect();
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
    assert!(fixture.due().await.is_empty());

    fixture.advance(201 * SECOND).await;
    let second = fixture.due().await.pop().expect("it is due again");
    assert!(!fixture.store.schedule_recheck(recheck, None).await.expect("an answer"), "the first is over");
    let elsewhere = Recheck { floor: floor(2), ..second.clone() };
    assert!(!fixture.store.schedule_recheck(&elsewhere, None).await.expect("an answer"));
    assert!(fixture.store.schedule_recheck(&second, None).await.expect("an answer"));
    fixture.advance(1_000_000 * SECOND).await;
    assert!(fixture.due().await.is_empty(), "it was the last");
}

/// A replica id belongs to the instance that was heard of last, unless that is told to give way.
pub async fn a_replica_id_is_one_live_instances(fixture: &LeaseFixture) {
    let store = &fixture.store;
    let first = announcement("a", 1, Some("http://a:1"));
    assert_eq!(store.announce(&first, TTL, false).await.expect("an answer"), Announced::Accepted);
    let second = Announcement { endpoint: None, ..announcement("a", 2, None) };
    fixture.advance(4 * SECOND).await;
    match fixture.another.announce(&second, TTL, false).await.expect("an answer") {
        Announced::Accepted => panic!("the first one is alive"),
        Announced::Taken { endpoint, seen_ago } => {
            assert_eq!(endpoint.as_deref(), Some("http://a:1"));
            assert!(seen_ago > Duration::ZERO && near(seen_ago, 4 * SECOND), "{seen_ago:?}");
        }
    }
    let rows = store.replicas().await.expect("a listing");
    assert_eq!(
        rows.into_iter().map(|row| row.announcement).collect::<Vec<_>>(),
        std::slice::from_ref(&first)
    );

    let later = Announcement { draining: true, open_tenants: 0, ..first.clone() };
    assert_eq!(store.announce(&later, TTL, false).await.expect("an answer"), Announced::Accepted, "its own");
    assert_eq!(
        store.announce(&second, TTL, true).await.expect("an answer"),
        Announced::Accepted,
        "superseded"
    );
    fixture.advance(TTL + SECOND).await;
    assert_eq!(store.announce(&first, TTL, false).await.expect("an answer"), Announced::Accepted, "silent");
}

/// A replica's row is removed by its own instance; the rows are listed in the order of their ids.
pub async fn replicas_are_listed_in_order_until_they_retire(fixture: &LeaseFixture) {
    let said =
        [announcement("a", 1, None), announcement("b", 2, Some("http://b:2")), announcement("c", 3, None)];
    for announcement in said.iter().rev() {
        fixture.store.announce(announcement, TTL, false).await.expect("an answer");
    }
    fixture.advance(2 * SECOND).await;
    let rows = fixture.another.replicas().await.expect("a listing");
    assert!(rows.iter().all(|row| near(row.seen_ago, 2 * SECOND)));
    assert_eq!(rows.into_iter().map(|row| row.announcement).collect::<Vec<_>>(), said);

    let [a, b, _] = &said;
    fixture.store.retire(&a.replica, b.instance).await.expect("an answer");
    assert_eq!(fixture.another.replicas().await.expect("a listing").len(), 3, "another's row stays");
    fixture.store.retire(&a.replica, a.instance).await.expect("an answer");
    fixture.store.retire(&a.replica, a.instance).await.expect("twice is once");
    let rows = fixture.another.replicas().await.expect("a listing");
    assert_eq!(rows.into_iter().map(|row| row.announcement).collect::<Vec<_>>(), said[1..]);
}

/// A replica that retired is still named as a holder, without an endpoint.
pub async fn a_holder_that_said_nothing_has_no_endpoint(fixture: &LeaseFixture) {
    let said = announcement("a", 1, Some("http://a:1"));
    fixture.store.announce(&said, TTL, false).await.expect("an answer");
    fixture.take("acme/t", "a", 1).await;
    let owner = fixture.row("acme/t").await.owner.expect("an owner");
    assert_eq!(owner.endpoint.as_deref(), Some("http://a:1"));
    fixture.store.retire(&said.replica, said.instance).await.expect("an answer");
    match fixture.ask("acme/t", "b", 2).await {
        Acquisition::Held(holder) => assert_eq!((holder.replica.as_str(), holder.endpoint), ("a", None)),
        other => panic!("a held lease was answered {other:?}"),
    }
}

/// The first derivation key's fingerprint is kept for ever.
pub async fn the_first_derivation_key_is_kept(fixture: &LeaseFixture) {
    for (store, given) in [(&fixture.store, "first"), (&fixture.another, "second"), (&fixture.store, "first")]
    {
        let kept = store.bind_derivation_key(given).await.expect("an answer");
        assert_eq!(kept, "first");
    }
}

/// Of many that ask for one free lease at the same time exactly one is granted it.
pub async fn of_racing_acquisitions_one_wins(fixture: &LeaseFixture) {
    for (round, name) in ["acme/fresh", "acme/lapsed", "acme/released"].into_iter().enumerate() {
        match name {
            "acme/lapsed" => {
                fixture.take(name, "old", 100).await;
                fixture.advance(TTL + SECOND).await;
            }
            "acme/released" => {
                let old = fixture.take(name, "old", 100).await;
                fixture.store.release(&old).await.expect("a release");
            }
            _ => {}
        }
        let racers = (1..=8_u128).map(|racer| {
            let store = if racer % 2 == 0 { &fixture.store } else { &fixture.another };
            let store = Arc::clone(store);
            let replica = format!("r{racer}").parse().expect("a replica id");
            tokio::spawn(async move {
                store.acquire(&key(name), &replica, tenure_id(racer), TTL).await.expect("an answer")
            })
        });
        let answers = join_all(racers).await.into_iter().map(|answer| answer.expect("no panic"));
        let (won, lost): (Vec<_>, Vec<_>) =
            answers.partition(|answer| matches!(answer, Acquisition::Granted(_)));
        assert_eq!((won.len(), lost.len()), (1, 7), "{name}");
        assert_eq!(won, [granted(if round == 0 { 1 } else { 2 })], "{name}");
    }
}

/// Of a renewal and a takeover of one lapsed lease at the same time exactly one wins.
pub async fn of_a_renewal_and_a_takeover_one_wins(fixture: &LeaseFixture) {
    for round in 0..10 {
        let name = format!("acme/t{round}");
        let old = fixture.take(&name, "a", 1).await;
        fixture.advance(TTL + SECOND).await;
        let renewal = {
            let (store, claims) = (Arc::clone(&fixture.another), [old.clone()]);
            tokio::spawn(async move { store.renew(&claims, TTL).await.expect("a renewal") })
        };
        let taken = fixture.ask(&name, "b", 2).await == granted(2);
        let renewed = renewal.await.expect("no panic") == [Renewal::Granted];
        let row = fixture.row(&name).await;
        if taken {
            // A renewal that came first would have made the lease run on.
            assert!(!renewed && row.is_of(&claim(&name, "b", 2, 2)), "{name}");
        } else {
            assert!(renewed && row.is_of(&old), "{name}");
        }
    }
}

/// A test per behaviour of [`conformance::lease`](crate::conformance::lease), each with what `async fn $fixture() -> LeaseFixture`
/// gives.
#[macro_export]
macro_rules! lease_conformance {
    ($fixture:path) => {
        $crate::lease_conformance!(@each $fixture:
            a_fresh_lease_is_granted_in_the_first_epoch,
            a_held_lease_tells_its_holder_and_stays_as_it_is,
            a_lease_that_ran_out_is_taken_over_in_the_next_epoch,
            a_repeated_attempt_adopts_its_grant,
            another_attempt_of_the_same_replica_waits,
            a_batch_is_renewed_and_answered_in_its_order,
            a_large_batch_is_renewed,
            a_lapsed_lease_is_renewed_until_somebody_took_it,
            a_released_lease_is_free_at_once_and_its_epoch_is_used,
            the_floor_is_raised_by_the_holder_and_never_falls,
            a_receipt_is_kept_until_the_next_forget,
            a_paused_tenant_is_given_to_nobody_until_it_is_resumed,
            a_paused_tenant_is_forgotten_and_not_paused_afterwards,
            an_epoch_is_advanced_by_its_holder_and_only_rises,
            the_last_epoch_is_the_last,
            an_organization_is_listed_in_pages,
            a_recheck_comes_up_when_it_is_due_and_is_taken_once,
            a_replica_id_is_one_live_instances,
            replicas_are_listed_in_order_until_they_retire,
            a_holder_that_said_nothing_has_no_endpoint,
            the_first_derivation_key_is_kept,
            of_racing_acquisitions_one_wins,
            of_a_renewal_and_a_takeover_one_wins,
            any_sequence_of_calls_follows_the_rules,
        );
    };
    (@each $fixture:path: $($behaviour:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $behaviour() {
            $crate::conformance::lease::$behaviour(&$fixture().await).await;
        }
    )*};
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_macro_names_every_behaviour() {
        let source = include_str!("lease.rs");
        let (behaviours, listed) = source.split_once("macro_rules!").unwrap();
        let names: Vec<_> =
            behaviours.split("\npub async fn ").skip(1).filter_map(|rest| rest.split('(').next()).collect();
        assert!(names.len() > 10);
        for name in names {
            assert!(listed.contains(&format!(" {name},\n")), "{name}");
        }
    }
}
