//! A forget, and the looks at a forgotten tenant after it, performed.

use std::{future::Future, time::Duration};

use leasehold_lease::Claim;
use leasehold_types::{Act, Floor, LeaseKey, ReplicaId};

use super::{act::Operation, context::SnapshotContext};
use crate::{
    Layout, SnapshotError,
    format::{Format, Receipt},
    plan::{Answer, Ask, ClearPlan, Cleared, ForgetPlan, Step, recheck_times},
};

/// Forgets the tenant of `claim` (protocol.md, "Forget"). The caller has closed its gate, and no upload of its
/// own is under way.
///
/// Refused by the row: [`SnapshotError::Fenced`], and nothing was done. `floor_raised` is called right after
/// the row's floor was raised: from then on the tenure never serves again, whatever comes of the rest.
/// `remove_local` is called once a listing has shown that nothing is left at or below the floor. Then the
/// receipt is stored in the row; that the row is somebody else's by then is no failure (contract row F7).
pub async fn forget<L>(
    ctx: &SnapshotContext,
    claim: &Claim,
    ttl: Duration,
    floor_raised: impl FnOnce(Floor) + Send,
    remove_local: impl FnOnce() -> L + Send,
) -> Result<Receipt, SnapshotError>
where
    L: Future<Output = Result<(), SnapshotError>> + Send,
{
    let layout = Layout::new(&claim.key);
    let forgotten_at = ctx.clock.wall();
    let mut floor_raised = Some(floor_raised);
    let mut plan = ForgetPlan::new(claim.clone(), forgotten_at);
    let forgotten = loop {
        let ask = match plan.next() {
            Step::Ask(ask) => ask,
            Step::Done(forgotten) => break forgotten,
        };
        let work = async {
            Ok::<_, SnapshotError>(match &ask {
                Ask::RaiseFloor(claim) => {
                    let raise = || ctx.leases.raise_floor(claim, ttl);
                    Answer::FloorRaised(ctx.lease("raise a floor", raise).await?.0)
                }
                ask => clear_step(ctx, &layout, ask).await?,
            })
        };
        let answer = ctx.step(Operation::Forget, &layout, &ask, work).await?;
        if let Answer::FloorRaised(Some(floor)) = answer
            && let Some(told) = floor_raised.take()
        {
            told(floor);
        }
        plan.feed(answer)?;
    };
    let receipt = Receipt {
        format: Format,
        key: claim.key.clone(),
        floor: forgotten.floor,
        objects_deleted: forgotten.cleared.objects,
        bytes_deleted: forgotten.cleared.bytes,
        verified_at: ctx.clock.wall(),
        recheck_at: recheck_times(ttl).map(|after| forgotten_at.plus(after)).to_vec(),
    };
    let key = Some(&claim.key);
    ctx.points.around(Act::ForgetLocal, key, remove_local()).await?;
    let json = receipt.to_json();
    let store = ctx.lease("store a receipt", || ctx.leases.store_receipt(claim, &json));
    if let Err(error) = ctx.points.around(Act::ForgetReceipt, key, store).await {
        // What was asked for is done and proved; a forget that is repeated proves it again.
        tracing::warn!(key = %claim.key, %error, "the receipt of a forget was not stored");
    }
    Ok(receipt)
}

/// Looks at a forgotten tenant again and deletes what a late upload has left at or below `floor`, which its row has.
pub async fn recheck(
    ctx: &SnapshotContext,
    key: &LeaseKey,
    floor: Floor,
    replica: &ReplicaId,
) -> Result<Cleared, SnapshotError> {
    let layout = Layout::new(key);
    let mut plan = ClearPlan::new(key, floor, replica.clone(), ctx.clock.wall());
    loop {
        match plan.next() {
            Step::Ask(ask) => {
                let work = clear_step(ctx, &layout, &ask);
                plan.feed(ctx.step(Operation::Recheck, &layout, &ask, work).await?)?;
            }
            Step::Done(cleared) => return Ok(cleared),
        }
    }
}

/// A step of a clearing: its deletions are repeated, since a forget is to succeed where it can.
async fn clear_step(ctx: &SnapshotContext, layout: &Layout, ask: &Ask) -> Result<Answer, SnapshotError> {
    let Ask::DeleteEpoch(epoch) = ask else { return ctx.perform(layout, ask).await };
    let prefix = layout.epoch(*epoch);
    let (limit, tries) = (ctx.options.call_limit, ctx.options.retry.tries);
    let delete = || ctx.blobs.delete_prefix(&prefix);
    Ok(Answer::Deleted(ctx.blob(&format!("delete {prefix}"), limit, tries, delete).await?))
}
