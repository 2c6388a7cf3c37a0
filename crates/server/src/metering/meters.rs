//! What a replica meters.

use std::{net::IpAddr, sync::Arc};

use leasehold_types::{Clock, LeaseKey};

use super::{CallerId, rate::Rates};
use crate::{bounds::Bound, config::LimitSettings};

/// What is metered.
#[derive(Debug)]
pub(crate) struct Metering {
    /// Requests at work, for each caller.
    pub(crate) in_flight: Arc<Bound<CallerId>>,
    pub(crate) per_caller: Rates<CallerId>,
    pub(crate) per_tenant: Rates<LeaseKey>,
    /// Requests of who is not known, for each address.
    pub(crate) failures: Rates<IpAddr>,
}

impl Metering {
    pub(crate) fn new(limits: &LimitSettings, clock: &Arc<dyn Clock>) -> Self {
        let keys_max = limits.rate_keys_max;
        Self {
            in_flight: Bound::new("requests are at work", usize::MAX, limits.in_flight_per_caller_max),
            per_caller: Rates::new(limits.rate_per_caller, limits.rate_burst, keys_max, clock),
            per_tenant: Rates::new(limits.rate_per_tenant, limits.rate_burst, keys_max, clock),
            failures: Rates::new(limits.rate_failures_per_peer, limits.rate_burst, keys_max, clock),
        }
    }
}
