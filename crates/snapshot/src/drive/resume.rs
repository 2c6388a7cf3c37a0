//! A resumption, performed.

use leasehold_lease::Claim;

use super::{act::Operation, context::SnapshotContext};
use crate::{
    Layout, OwnManifests, SnapshotError,
    plan::{Resume, ResumePlan, Step},
};

/// What the store says of a tenure whose lease lapsed and whose row has granted a renewal since (protocol.md,
/// "Lapsed, then resumed"). On an error the tenure stays lapsed and asks again.
pub async fn resume(
    ctx: &SnapshotContext,
    claim: &Claim,
    own: &OwnManifests,
) -> Result<Resume, SnapshotError> {
    let layout = Layout::new(&claim.key);
    let mut plan = ResumePlan::new(claim.clone(), own);
    loop {
        match plan.next() {
            Step::Ask(ask) => {
                let work = ctx.perform(&layout, &ask);
                plan.feed(ctx.step(Operation::Resume, &layout, &ask, work).await?)?;
            }
            Step::Done(resume) => return Ok(resume),
        }
    }
}
