//! What a replica does until it comes to a point, and what was there before it.

use leasehold_proof::{Action, Arm, Client, ProofError};
use leasehold_types::{Act, Epoch, LeaseKey, Point};
use serde_json::json;

use crate::{
    process::Process,
    stage::{Stage, TIMES, until_done},
};

/// A life that a replica leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    /// It opens a tenant that others left in disorder, publishes, hands off, abandons, opens again, forgets.
    Usual,
    /// It serves and renews.
    Renewing,
    /// It writes much.
    Writing,
    /// It opens a tenant whose forget was not finished.
    Unfinished,
    /// It is stopped for longer than its lease runs, and nobody takes over.
    Lapsing,
    /// It is stopped for longer than its lease runs, and somebody takes over.
    Losing,
    /// It is stopped in a forget, and somebody takes over.
    Overtaken,
    /// It starts when a forgotten tenant is due to be looked at.
    Rechecking,
}

/// Which life comes to an act. Without a wildcard: a new act has to be given one.
pub(crate) const fn story_of(act: Act) -> Story {
    match act {
        Act::OpenAcquire
        | Act::OpenRoot
        | Act::OpenFloors
        | Act::OpenAdvance
        | Act::OpenList
        | Act::OpenReadEntry
        | Act::OpenReadBase
        | Act::OpenSeal
        | Act::OpenFence
        | Act::OpenPin
        | Act::OpenFetch
        | Act::OpenRenew
        | Act::OpenSalvage
        | Act::OpenInstall
        | Act::OpenLedger
        | Act::OpenServe
        | Act::PublishImage
        | Act::PublishEncode
        | Act::PublishUpload
        | Act::PublishManifest
        | Act::PublishReadBack
        | Act::PublishRow
        | Act::PublishFloors
        | Act::PublishDeadline
        | Act::HandoffGate
        | Act::HandoffFlush
        | Act::HandoffImage
        | Act::HandoffEncode
        | Act::HandoffUpload
        | Act::HandoffManifest
        | Act::HandoffReadBack
        | Act::HandoffRow
        | Act::HandoffFloors
        | Act::HandoffDeadline
        | Act::HandoffReopen
        | Act::AbandonGate
        | Act::ReleaseSalvage
        | Act::ReleaseDiscard
        | Act::ReleaseRow
        | Act::ReleaseEnd
        | Act::ForgetGate
        | Act::ForgetRaiseFloor
        | Act::ForgetFloorObject
        | Act::ForgetList
        | Act::ForgetDelete
        | Act::ForgetLocal
        | Act::ForgetReceipt
        | Act::SweepFloors
        | Act::SweepList
        | Act::SweepReadEntry
        | Act::SweepReadBase
        | Act::SweepDelete
        | Act::TrimDelete => Story::Usual,
        Act::RenewRow | Act::RenewTold => Story::Renewing,
        Act::LedgerCheckpoint => Story::Writing,
        Act::OpenFloorObject | Act::SweepDeleteEpoch => Story::Unfinished,
        Act::ResumeReadBase | Act::ResumeReadEntry | Act::ResumeFloors => Story::Lapsing,
        Act::LostGate | Act::LostSalvage => Story::Losing,
        Act::ForgetReadBase => Story::Overtaken,
        Act::RecheckFloorObject
        | Act::RecheckList
        | Act::RecheckDelete
        | Act::RecheckSchedule
        | Act::RecheckLocal => Story::Rechecking,
    }
}

/// Where a replica of the product is told what to arm on its way: a process, or one in this process.
pub(crate) trait Orders {
    async fn arm(&self, arm: Arm) -> Result<(), ProofError>;
    async fn until_reached(&self, point: Point) -> Result<(), ProofError>;
    async fn go(&self) -> Result<(), ProofError>;
}

impl Orders for Process {
    async fn arm(&self, arm: Arm) -> Result<(), ProofError> {
        Self::arm(self, arm).await
    }

    async fn until_reached(&self, point: Point) -> Result<(), ProofError> {
        Self::until_reached(self, point).await
    }

    async fn go(&self) -> Result<(), ProofError> {
        Self::go(self).await
    }
}

impl Story {
    /// Where the replica is stopped on its way to the point, beside the point itself.
    pub(crate) const fn stop(self) -> Option<Point> {
        match self {
            Self::Lapsing | Self::Losing => Some(Point::Before(Act::RenewRow)),
            Self::Overtaken => Some(Point::After(Act::ForgetRaiseFloor)),
            _ => None,
        }
    }

    /// Whether somebody takes over while it is stopped there.
    pub(crate) const fn is_taken_over(self) -> bool {
        matches!(self, Self::Losing | Self::Overtaken)
    }

    /// What was there before: `replica` is the one whose life it is.
    pub(crate) async fn prepare(
        self,
        stage: &Stage,
        key: &LeaseKey,
        replica: &str,
    ) -> Result<(), ProofError> {
        let other = stage.other(key)?;
        match self {
            Self::Usual => {
                // Three snapshots and a tail, one epoch that was only begun, one that was only acquired, one that the row does not know.
                until_done("an opening", async || other.open().await).await?;
                for id in ["p-1", "p-2", "p-3"] {
                    other.append(id).await?.done()?;
                    other.snapshot().await?.done()?;
                }
                other.append("p-4").await?.done()?;
                other.abandon().await.done()?;
                other.open().await?.done()?;
                other.abandon().await.done()?;
                let claim = stage.claim(key).await?;
                stage.leases.release(&claim).await?;
                if let Some(next) = claim.epoch.next() {
                    stage.put(key, next, "trace").await?;
                }
                leave_ledger(stage, key, replica)?;
            }
            Self::Unfinished => {
                let claim = stage.claim(key).await?;
                stage.put(key, claim.epoch, "image").await?;
                stage.leases.raise_floor(&claim, TIMES.ttl).await?;
                stage.leases.release(&claim).await?;
            }
            Self::Rechecking => {
                until_done("an opening", async || other.open().await).await?;
                other.append("p-1").await?.done()?;
                other.snapshot().await?.done()?;
                other.forget().await?.done()?;
                stage.put(key, Epoch::FIRST, "late").await?;
                leave_ledger(stage, key, replica)?;
                // It is due a ttl after the forget.
                leasehold_testkit::pass(TIMES.ttl * 2).await;
            }
            Self::Renewing | Self::Writing | Self::Lapsing | Self::Losing | Self::Overtaken => {}
        }
        Ok(())
    }

    /// What its callers ask for, to the end of its life. `client` asks the replica, `orders` arms it.
    pub(crate) async fn tell(self, client: &Client, orders: &impl Orders) -> Result<(), ProofError> {
        // Armed once it serves: what a stop in an opening leads to is another story.
        let arm_stop = async || match self.stop() {
            Some(point) => orders.arm(Arm { point, nth: 1, action: Action::Stop }).await,
            None => Ok(()),
        };
        match self {
            Self::Usual => usual(client, orders).await,
            Self::Renewing | Self::Lapsing => {
                client.open().await?.done()?;
                client.append("u-1").await?.done()?;
                client.snapshot().await?.done()?;
                client.append("u-2").await?.done()?;
                arm_stop().await
            }
            Self::Losing => {
                client.open().await?.done()?;
                client.append("u-1").await?.done()?;
                arm_stop().await
            }
            Self::Writing => {
                client.open().await?.done()?;
                for number in 0..24 {
                    let text = "x".repeat(200 << 10);
                    client.append_with(&format!("u-{number}"), json!({ "text": text })).await?.done()?;
                }
                Ok(())
            }
            Self::Unfinished => {
                client.open().await?.done()?;
                client.append("u-1").await?.done()?;
                client.snapshot().await?.done().map(drop)
            }
            Self::Overtaken => {
                client.open().await?.done()?;
                client.append("u-1").await?.done()?;
                client.snapshot().await?.done()?;
                arm_stop().await?;
                client.forget().await?.done().map(drop)
            }
            Self::Rechecking => Ok(()),
        }
    }
}

async fn usual(client: &Client, orders: &impl Orders) -> Result<(), ProofError> {
    let arm = async |point, action| orders.arm(Arm { point, nth: 1, action }).await;
    let epoch = client.open().await?.done()?;
    client.append("u-1").await?.done()?;
    client.append("u-2").await?.done()?;
    client.snapshot().await?.done()?;

    // A manifest whose put has no answer, and a row that cannot be read.
    client.append("u-3").await?.done()?;
    arm(Point::Before(Act::PublishManifest), Action::LosePut).await?;
    arm(Point::Before(Act::PublishRow), Action::LoseRow).await?;
    client.snapshot().await?.done()?;
    for id in ["u-4", "u-5"] {
        client.append(id).await?.done()?;
        client.snapshot().await?.done()?;
    }
    handoff_with_tail(client, orders, epoch, ["u-6", "u-7"]).await?.done()?;

    let epoch = client.append("u-8").await?.done()?.epoch;
    arm(Point::Before(Act::HandoffManifest), Action::LosePut).await?;
    arm(Point::Before(Act::HandoffRow), Action::LoseRow).await?;
    handoff_with_tail(client, orders, epoch, ["u-9", "u-10"]).await?.done()?;

    let epoch = client.append("u-11").await?.done()?.epoch;
    arm(Point::Before(Act::HandoffUpload), Action::BlobsDown).await?;
    arm(Point::Before(Act::HandoffReopen), Action::BlobsUp).await?;
    if handoff_with_tail(client, orders, epoch, ["u-12", "u-13"]).await?.is_done() {
        return Err("a handoff succeeded without a store".into());
    }
    client.append("u-14").await?.done()?;
    client.abandon().await.done()?;

    client.append("u-15").await?.done()?;
    client.snapshot().await?.done()?;
    client.forget().await?.done().map(drop)
}

/// A handoff that has something left to upload: it is written while what was there before is being published ahead.
async fn handoff_with_tail(
    client: &Client,
    orders: &impl Orders,
    epoch: Epoch,
    [before, tail]: [&str; 2],
) -> Result<leasehold_proof::Answered<()>, ProofError> {
    let taken = Point::After(Act::PublishImage);
    orders.arm(Arm { point: taken, nth: 1, action: Action::Hold }).await?;
    client.append(before).await?.done()?;
    let write = async {
        orders.until_reached(taken).await?;
        let written = client.append(tail).await?.done();
        orders.go().await?;
        written
    };
    let (handed_off, written) = tokio::join!(client.handoff(epoch), write);
    written?;
    handed_off
}

/// A file where the tenant's ledger lies on a replica's disk.
fn leave_ledger(stage: &Stage, key: &LeaseKey, replica: &str) -> Result<(), ProofError> {
    let path = leasehold_ledger::ledger_path(&stage.root_of(replica, key)?);
    std::fs::create_dir_all(path.parent().ok_or("a file lies in a directory")?)?;
    Ok(std::fs::write(path, b"what a crash left")?)
}
