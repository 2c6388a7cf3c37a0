//! The container's facts.

use std::{sync::Arc, time::Duration};

use leasehold_blob::{AzureOptions, AzureStore, BlobError, BlobStore as _, ContainerReach};
use leasehold_server::Edges;

use super::{
    asking::Asking,
    probes::{PROBE_LEN, Probes},
};
use crate::doctor::{
    check::Check,
    fact::Fact,
    facts::{Container, Probed},
};

const ROUND_TRIPS: usize = 10;
/// What passes by itself is tried again once: doctors should tell what is, not what was for a moment.
const ATTEMPTS: u32 = 2;

pub(super) async fn gather(
    asking: &Asking,
    edges: &Edges,
    mut options: AzureOptions,
    probes: &Probes,
) -> Container {
    options.limits.attempts = options.limits.attempts.min(ATTEMPTS);
    options.limits.connect = options.limits.connect.min(asking.limit_within());
    options.limits.silence = options.limits.silence.min(asking.limit_within());
    options.limits.request = options.limits.request.min(asking.limit_within());
    options.limits.patience = options.limits.patience.min(asking.limit_within());
    let name = options.container.clone();
    let store = match AzureStore::connect(options) {
        Ok(store) => store,
        Err(error) => return closed(name, Err(error).into(), Fact::after(Check::ContainerReach), probes),
    };
    let is_private_way = Fact::Known(store.is_private_way());
    let reach = asking.fact("reach the container", store.reach(&probes.prefix)).await;
    if reach.known() != Some(&ContainerReach::Open) {
        return closed(name, reach, is_private_way, probes);
    }
    let settings = asking.fact("read the container's settings", store.container_settings()).await;
    let mut found = probes.probe(asking, &store).await;
    let kept = if found.deletes.known().is_some() {
        asking.fact("look for what is kept", store.kept_of_deleted(&probes.one)).await
    } else {
        Fact::Unasked("nothing could be deleted".into())
    };
    let round_trips = asking.fact("measure round trips", round_trips(&store, edges, probes)).await;
    found.cleaned = probes.clean(asking, &store).await;
    Container { name, reach, is_private_way, settings, probed: found, kept, round_trips }
}

async fn round_trips(store: &AzureStore, edges: &Edges, probes: &Probes) -> Result<Vec<Duration>, BlobError> {
    let clock = Arc::clone(&edges.clock);
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let began = clock.now();
        store.get(&probes.one, PROBE_LEN).await?;
        trips.push(clock.now().since(began));
    }
    Ok(trips)
}

fn closed(
    name: String,
    reach: Fact<ContainerReach>,
    is_private_way: Fact<bool>,
    probes: &Probes,
) -> Container {
    Container {
        name,
        reach,
        is_private_way,
        settings: Fact::after(Check::ContainerReach),
        probed: Probed::unasked(probes.prefix.as_str(), "container.reach failed"),
        kept: Fact::after(Check::ContainerReach),
        round_trips: Fact::after(Check::ContainerReach),
    }
}
