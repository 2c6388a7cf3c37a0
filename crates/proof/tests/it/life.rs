//! One life: a replica comes to a point, something is done to it there, another one serves, and everything is judged.

use std::{fmt, time::Duration};

use leasehold_proof::{Action, Arm, Client, ProofError, left_of, owners};
use leasehold_testkit::{pass, within};
use leasehold_types::{LeaseKey, Point};

use crate::{
    process::Process,
    stage::{LONG, Stage, TIMES, until_done},
    stories::{Story, story_of},
};

/// How long a request that ought to be refused may wait for its tenant to settle.
const SHORT: Duration = Duration::from_millis(300);

/// How long a point may take to come after everything was done that leads to it: a renewal, a sweep, a look at what was forgotten.
const COMES_BY_ITSELF: Duration = Duration::from_secs(60);

/// How a life ended in which no promise was broken.
#[derive(Debug)]
pub(crate) enum Led {
    /// What was to be done was done at the point, and what followed was judged.
    Judged,
    /// It never came to the point, and nothing was done to it. On a machine that is slow enough a lease runs out in the middle of a story, and what
    /// was to follow is refused.
    Astray(String),
}

/// What is done to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, until another replica has served.
    Stop,
}

/// Where it is done: at the how-manieth time that a life comes there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) point: Point,
    pub(crate) nth: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.point, self.nth)
    }
}

/// Leads the life that comes to `place`, and judges what follows.
pub(crate) async fn lead(stage: &Stage, place: Place, fault: Fault, name: &str) -> Result<Led, ProofError> {
    let key: LeaseKey = format!("proof/{name}").parse()?;
    let story = story_of(place.point.act());
    story.prepare(stage, &key, name).await?;

    let action = match fault {
        Fault::Kill => Action::Kill,
        Fault::Stop => Action::Stop,
    };
    let target = Arm { point: place.point, nth: place.nth, action };
    let process = Process::start((&stage.world, stage.dir(), TIMES), name, &key, &[target]).await?;
    let client = stage.client(&process.endpoint, &key)?;
    let other = stage.other(&key)?;

    let mut told = std::pin::pin!(story.tell(&client, &process));
    let mut reached = std::pin::pin!(reach(story, &process, &other, target.point));
    let mut story_ended = false;
    tokio::select! {
        reached = &mut reached => reached?,
        // The point comes with time, or it was the end of what was asked for.
        told = &mut told => {
            story_ended = true;
            tokio::select! {
                reached = &mut reached => reached.map_err(|error| format!("{error}, and its callers: {told:?}"))?,
                () = pass(COMES_BY_ITSELF) => {
                    let breaches = stage.recorder.breaches(&key);
                    let astray = format!("its callers were told {told:?}");
                    return if breaches.is_empty() { Ok(Led::Astray(astray)) } else { Err(format!("{breaches:?}").into()) };
                }
            }
        }
    }
    match fault {
        // What is under way has no answer any more.
        Fault::Kill => process.ended(true).await?,
        Fault::Stop => {
            process.until_stopped().await;
            serve(&other, "s-1").await?;
            process.wake()?;
            if !story_ended {
                // Whatever it answers now is judged like everything else.
                let _ = within(LONG, "what was under way", told).await;
            }
        }
    }
    if fault == Fault::Stop {
        client.clone().with_patience(SHORT).append("late").await?;
    }
    serve(&other, "s-2").await?;
    settle(stage, &other, &key).await?;
    if fault == Fault::Stop {
        process.ended(false).await?;
    }
    finish(stage, &other, &key).await.map(|()| Led::Judged)
}

/// Waits until the process has come to the point, past what stops it on its way.
async fn reach(story: Story, process: &Process, other: &Client, target: Point) -> Result<(), ProofError> {
    if let Some(stop) = story.stop() {
        process.until_reached(stop).await?;
        process.until_stopped().await;
        if story.is_taken_over() {
            serve(other, "s-0").await?;
        } else {
            pass(TIMES.ttl).await;
        }
        process.wake()?;
    }
    process.until_reached(target).await
}

/// The other replica takes the tenant over, once it may, and serves: what it has is judged, what it writes is published.
async fn serve(other: &Client, id: &str) -> Result<(), ProofError> {
    until_done("the other replica's opening", async || other.open().await).await?;
    until_done("a history", async || other.read().await).await?;
    until_done("a write", async || other.append(id).await).await?;
    until_done("a snapshot", async || other.snapshot().await).await?;
    until_done("a history", async || other.read().await).await.map(drop)
}

/// It hands the tenant off, and whoever opens it next has the same; no epoch has two owners.
async fn settle(stage: &Stage, other: &Client, key: &LeaseKey) -> Result<(), ProofError> {
    until_done("a handoff", async || {
        let epoch = match other.open().await? {
            leasehold_proof::Answered::Done(epoch) => epoch,
            leasehold_proof::Answered::Refused(why) => return Ok(leasehold_proof::Answered::Refused(why)),
            leasehold_proof::Answered::Unknown(why) => return Ok(leasehold_proof::Answered::Unknown(why)),
        };
        other.handoff(epoch).await
    })
    .await?;
    until_done("an opening", async || other.open().await).await?;
    until_done("a history", async || other.read().await).await?;
    owners(&*stage.blobs, key).await.map(drop)
}

/// A forget empties the store, whatever the life has left there; nothing broke the rule meanwhile.
async fn finish(stage: &Stage, other: &Client, key: &LeaseKey) -> Result<(), ProofError> {
    until_done("a forget", async || other.forget().await).await?;
    let left = left_of(&*stage.blobs, key).await?;
    if !left.is_empty() {
        return Err(format!("a forget has left {left:?}").into());
    }
    until_done("an opening", async || other.open().await).await?;
    let (_, served) = until_done("a history", async || other.read().await).await?;
    if !served.is_empty() {
        return Err(format!("a forgotten tenant serves {served:?}").into());
    }
    other.abandon().await.done()?;
    let breaches = stage.recorder.breaches(key);
    if breaches.is_empty() { Ok(()) } else { Err(format!("{breaches:?}").into()) }
}
