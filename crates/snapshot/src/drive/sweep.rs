//! Sweeps, performed.

use leasehold_lease::Claim;

use super::{act::Operation, context::SnapshotContext};
use crate::{
    Layout, OwnManifest, OwnManifests, SnapshotError,
    plan::{Ask, Step, SweepPlan, Swept},
};

/// Deletes what the tenure of `claim` may delete (protocol.md, "Sweep"): dead epochs at any time, superseded
/// snapshots once `newest` is known to be the tenure's own ([`OwnManifests::newest`]).
///
/// Runs beside the tenure's other work, never inside an opening (contract row S1). An error ends it with
/// nothing more deleted; it is not repeated here (S2).
pub async fn sweep(
    ctx: &SnapshotContext,
    claim: &Claim,
    newest: Option<OwnManifest>,
) -> Result<Swept, SnapshotError> {
    let layout = Layout::new(&claim.key);
    let mut plan = SweepPlan::new(claim.clone(), newest, ctx.options.keep, ctx.clock.wall());
    loop {
        match plan.next() {
            Step::Ask(ask) => {
                let work = ctx.perform(&layout, &ask);
                plan.feed(ctx.step(Operation::Sweep, &layout, &ask, work).await?)?;
            }
            Step::Done(swept) => return Ok(swept),
        }
    }
}

/// Deletes the images of the tenure's own superseded manifests, as far as it remembers them: one deletion per
/// publish and no listing. Answers how many objects went; an error ends it, and the next call begins again.
pub async fn trim(
    ctx: &SnapshotContext,
    claim: &Claim,
    own: &mut OwnManifests,
) -> Result<u64, SnapshotError> {
    let layout = Layout::new(&claim.key);
    let kept = ctx.options.keep.superseded;
    let mut deleted = 0;
    for object in own.superseded_objects(kept) {
        let ask = Ask::Delete(object);
        ctx.step(Operation::Trim, &layout, &ask, ctx.perform(&layout, &ask)).await?;
        deleted += 1;
    }
    own.forget_superseded(kept);
    Ok(deleted)
}
