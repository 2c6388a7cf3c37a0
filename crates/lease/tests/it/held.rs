//! A held lease: its deadline, and what its answers do to it.

use leasehold_lease::{Acquired, HeldRenewal};
use leasehold_testkit::LeaseOp;
use leasehold_types::{Clock as _, Epoch, Floor, Moment};

use crate::stage::{HELD_FOR, SECOND, Stage, TTL, key};

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

#[tokio::test]
async fn the_deadline_counts_from_before_the_request_left() {
    let stage = Stage::new();
    let clock = stage.clock.clone();
    let sent_at = clock.now();
    stage.faults.after_next(LeaseOp::Acquire, move || {
        clock.advance(3 * SECOND);
        Box::pin(std::future::ready(()))
    });
    let lease = stage.hold("acme/t", "a", 1).await;
    assert_eq!(lease.deadline(), sent_at.plus(HELD_FOR));
    assert!(lease.proven(sent_at.plus(HELD_FOR).minus(SECOND)) && !lease.proven(lease.deadline()));
}

#[tokio::test]
async fn a_held_tenant_names_its_holder() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    match stage.try_hold("acme/t", "b", 2).await {
        Acquired::Refused(holder) => {
            assert_eq!((holder.replica.as_str(), holder.epoch), ("a", lease.epoch()));
        }
        other => panic!("held twice: {other:?}"),
    }
}

#[tokio::test]
async fn a_renewal_in_time_moves_the_deadline() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    stage.clock.advance(5 * SECOND);
    let sent_at = stage.clock.now();
    assert_eq!(lease.renew().await.unwrap(), HeldRenewal::Extended { sent_at });
    assert_eq!(lease.deadline(), sent_at.plus(HELD_FOR));
}

#[tokio::test]
async fn a_grant_after_the_deadline_waits_for_the_snapshot_store() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    let deadline = lease.deadline();
    // The request leaves in time; its answer comes when the deadline has passed.
    stage.clock.advance(5 * SECOND);
    let (clock, sent_at) = (stage.clock.clone(), stage.clock.now());
    stage.faults.after_next(LeaseOp::Renew, move || {
        clock.advance(4 * SECOND);
        Box::pin(std::future::ready(()))
    });
    assert_eq!(lease.renew().await.unwrap(), HeldRenewal::GrantedAfterLapse { sent_at });
    assert_eq!(lease.deadline(), deadline);
    assert!(!lease.extend_if_proven(sent_at) && !lease.proven(stage.clock.now()));
    lease.extend(sent_at);
    assert!(lease.proven(stage.clock.now()), "the snapshot store agreed");
}

#[tokio::test]
async fn the_deadline_never_moves_back() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    let deadline = lease.deadline();
    lease.extend(Moment::ORIGIN);
    assert_eq!(lease.deadline(), deadline);
}

#[tokio::test]
async fn a_lost_lease_is_refused() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    stage.clock.advance(TTL + SECOND);
    let successor = stage.hold("acme/t", "b", 2).await;
    assert_eq!(successor.epoch(), epoch(2));
    assert_eq!(lease.renew().await.unwrap(), HeldRenewal::Refused);
    assert!(!lease.release().await.unwrap());
}

#[tokio::test]
async fn a_lost_answer_is_adopted() {
    let stage = Stage::new();
    stage.faults.lose_answer_of(LeaseOp::Acquire);
    let store = std::sync::Arc::clone(&stage.store);
    let clock = std::sync::Arc::new(stage.clock.clone());
    let replica: leasehold_types::ReplicaId = "a".parse().unwrap();
    let tenure = crate::stage::tenure_id(1);
    let lost =
        leasehold_lease::HeldLease::acquire(store, clock, key("acme/t"), replica, tenure, Stage::times());
    assert_eq!(lost.await.unwrap_err().code().as_str(), "lease_store_unavailable");
    assert_eq!(stage.hold("acme/t", "a", 1).await.epoch(), Epoch::FIRST);
}

#[tokio::test]
async fn a_release_is_not_counted_on_whatever_its_answer() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    stage.faults.down(true);
    assert!(lease.release().await.is_err());
    assert!(!lease.proven(stage.clock.now()) && lease.is_given_up());
    lease.extend(stage.clock.now());
    assert!(!lease.proven(stage.clock.now()), "a late grant does not bring it back");
    stage.faults.down(false);
    assert!(lease.release().await.unwrap(), "asked again, it is released");
    assert!(!lease.release().await.unwrap());
    assert_eq!(lease.renew().await.unwrap(), HeldRenewal::Refused);
}

#[tokio::test]
async fn the_floor_of_a_held_lease_is_raised() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    assert_eq!(lease.floor(), Floor::NONE);
    assert_eq!(lease.raise_floor(TTL).await.unwrap(), Some(Floor::at(epoch(1))));
    assert_eq!(lease.floor(), Floor::at(epoch(1)));
    lease.release().await.unwrap();
    assert_eq!(stage.hold("acme/t", "b", 2).await.floor(), Floor::at(epoch(1)), "a grant tells it");
}

#[tokio::test]
async fn an_epoch_is_advanced_and_a_lost_answer_to_it_is_adopted() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    assert_eq!(lease.advance_past(epoch(4)).await.unwrap(), Some(epoch(5)));
    assert_eq!(lease.claim().epoch, epoch(5));

    stage.faults.lose_answer_of(LeaseOp::AdvanceEpoch);
    assert!(lease.advance_past(epoch(8)).await.is_err());
    assert_eq!(lease.epoch(), epoch(5), "not known yet");
    assert_eq!(lease.advance_past(epoch(8)).await.unwrap(), Some(epoch(9)));
    assert!(matches!(lease.renew().await.unwrap(), HeldRenewal::Extended { .. }));

    stage.clock.advance(TTL + SECOND);
    let successor = stage.hold("acme/t", "b", 2).await;
    assert_eq!(successor.epoch(), epoch(10));
    assert_eq!(lease.advance_past(epoch(20)).await.unwrap(), None, "it is another's");
    assert_eq!((lease.epoch(), successor.claim().epoch), (epoch(9), epoch(10)));
}

#[tokio::test]
async fn a_refusal_while_the_epoch_is_in_motion_says_nothing() {
    let stage = Stage::new();
    let lease = stage.hold("acme/t", "a", 1).await;
    let motion = lease.epoch_in_motion();
    // The row is advanced by somebody who has not told the lease yet.
    let advanced = stage.store.advance_epoch(&lease.claim(), epoch(3)).await.unwrap().unwrap();
    let error = lease.renew().await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    motion.settle(advanced);
    motion.settle(epoch(2));
    drop(motion);
    assert_eq!(lease.epoch(), advanced, "an epoch never falls");
    assert!(matches!(lease.renew().await.unwrap(), HeldRenewal::Extended { .. }));
}
