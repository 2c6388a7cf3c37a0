//! The plans, performed against the two stores: with time limits, bounded retries, and files.

mod act;
mod context;
mod encode;
mod fetch;
mod forget;
mod inspect;
mod open;
mod perform;
mod publish;
mod resume;
mod scratch;
mod sweep;

pub use context::{Retry, SnapshotContext, SnapshotOptions};
pub use fetch::Restored;
pub use forget::{forget, recheck};
pub use inspect::{At, AtError, SnapshotInfo, list, restore_to};
pub use open::{Opened, open};
pub use publish::{ImageFile, Published, publish};
pub use resume::resume;
pub use sweep::{sweep, trim};

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use leasehold_lease::Claim;
    use leasehold_types::{Floor, LeaseKey, ReplicaId};

    use super::*;
    use crate::OwnManifests;

    fn sent<T: Send>(_: T) {}

    /// Compiled, never run: a tenure's task may own each of these.
    #[expect(dead_code, reason = "its compilation is the test")]
    fn every_driver_can_be_spawned(
        ctx: &SnapshotContext,
        claim: &Claim,
        own: &mut OwnManifests,
        image: &ImageFile,
        key: &LeaseKey,
        replica: &ReplicaId,
        path: &Path,
    ) {
        sent(open(ctx, claim.clone(), Floor::NONE, Duration::ZERO, path, &|_| false));
        sent(publish(ctx, claim, own, image, false, &|| Ok(())));
        sent(resume(ctx, claim, own));
        sent(trim(ctx, claim, own));
        sent(sweep(ctx, claim, None));
        sent(forget(ctx, claim, Duration::ZERO, |_| {}, async || Ok(())));
        sent(recheck(ctx, key, Floor::NONE, replica));
        sent(list(ctx, key, 1));
        sent(restore_to(ctx, key, At::Newest, path));
    }
}
