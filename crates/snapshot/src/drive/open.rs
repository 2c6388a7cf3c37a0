//! An opening, performed.

use std::{io::ErrorKind, path::Path, time::Duration};

use leasehold_lease::{Claim, Renewal};
use leasehold_types::{Floor, Moment};

use super::{
    act::Operation,
    context::SnapshotContext,
    fetch::{Fetched, Restored, fetch},
};
use crate::{
    Layout, Listing, OwnManifests, SnapshotError,
    plan::{Answer, Ask, OpenPlan, Opening, Step},
};

/// A tenure that may serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The claim; its epoch may be above the one that was acquired.
    pub claim: Claim,
    /// The highest floor that the opening met.
    pub floor: Floor,
    /// The replica's clock before the row was last renewed: the deadline counts from here.
    pub renewed_sent_at: Moment,
    /// What is in the file now; `None`: the tenure starts empty and there is no file.
    pub restored: Option<Restored>,
    /// For the tenure to keep, and to hand to each publish.
    pub own: OwnManifests,
    /// What the opening saw of the tenant: whether there is anything for a sweep.
    pub seen: Listing,
}

/// Opens the tenant of `claim`, whose row has `floor`, and brings what it starts from to `into`, a database
/// file in an existing directory; what is there is replaced (protocol.md, "Open").
///
/// `stop` is asked before each step, with the claim as it stands: its epoch may have been raised, and whoever
/// renews the lease meanwhile has to name that one. Here the lease is renewed at the end only. Cancel-safe: a
/// dropped opening leaves at most a scratch file's name beside `into`, and what it put into the store is
/// stepped over by the next.
pub async fn open(
    ctx: &SnapshotContext,
    claim: Claim,
    floor: Floor,
    ttl: Duration,
    into: &Path,
    stop: &(dyn Fn(&Claim) -> bool + Send + Sync),
) -> Result<Opened, SnapshotError> {
    let layout = Layout::new(&claim.key);
    let (attempt, at) = (ctx.entropy.attempt_id(), ctx.clock.wall());
    let mut plan = OpenPlan::new(Opening { claim, floor, attempt, at });
    let mut restored = None;
    let mut renewed_sent_at = Moment::ORIGIN;
    loop {
        let ask = match plan.next() {
            Step::Ask(ask) => ask,
            Step::Done(start) => {
                if start.manifest.is_none() {
                    restored = None;
                    remove(into)?;
                }
                let (own, seen) = (OwnManifests::new(), start.seen);
                let (claim, floor) = (start.claim, start.floor);
                return Ok(Opened { claim, floor, renewed_sent_at, restored, own, seen });
            }
        };
        if stop(plan.claim()) {
            return Err(SnapshotError::Stopped { key: layout.key().clone() });
        }
        let operation = Operation::Open(plan.claim().epoch);
        let work = async {
            Ok::<_, SnapshotError>(match &ask {
                Ask::Fetch(manifest) => {
                    let object = layout.manifest(manifest.snapshot());
                    match fetch(ctx, manifest, &object, into).await? {
                        Fetched::Here(snapshot) => {
                            restored = Some(snapshot);
                            Answer::Fetched
                        }
                        Fetched::Missing(part) => Answer::PartMissing(part),
                    }
                }
                Ask::Renew(claim) => {
                    let (granted, sent_at) = renew(ctx, claim, ttl).await?;
                    renewed_sent_at = sent_at;
                    Answer::Renewed(granted)
                }
                ask => ctx.perform(&layout, ask).await?,
            })
        };
        let answer = ctx.step(operation, &layout, &ask, work).await?;
        plan.feed(answer)?;
    }
}

/// One renewal by the row, and the clock before the request that was answered left.
async fn renew(ctx: &SnapshotContext, claim: &Claim, ttl: Duration) -> Result<(bool, Moment), SnapshotError> {
    let call = || async {
        let sent_at = ctx.clock.now();
        let answers = ctx.leases.renew(std::slice::from_ref(claim), ttl).await?;
        Ok((answers.first() == Some(&Renewal::Granted), sent_at))
    };
    Ok(ctx.lease("renew a lease", call).await?.0)
}

fn remove(path: &Path) -> Result<(), SnapshotError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(SnapshotError::local("remove", path)(error)),
        _ => Ok(()),
    }
}
