//! Open files: how many this process may have, and how many its configuration may come to.
//!
//! A shell gives a process a thousand or so and lets it ask for more. A replica that runs out of them can open no tenant, take no
//! connection and write no image, so it asks for all that it may have, and says where that is too few.

use leasehold_server::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What an open tenant takes: its ledger's writer, a reader, the log and its index (`cargo xtask bench memory`).
const PER_TENANT: u64 = 4;
/// What is neither a tenant's nor a connection: the stores' connections, uploads and exports under way, the locks, the streams.
const BESIDE: u64 = 256;

/// How many a process of this configuration may come to.
pub(crate) fn needed(config: &Config) -> u64 {
    let limits = &config.limits;
    // What is forwarded takes one more to the other replica.
    let listeners = if config.peers.listen.is_some() { 2 } else { 1 };
    let connections = limits.connections_max.saturating_mul(listeners).saturating_add(limits.in_flight_max);
    let tenants = PER_TENANT.saturating_mul(limits.open_tenants_max as u64);
    tenants.saturating_add(connections as u64).saturating_add(BESIDE)
}

/// How many this process could ask for; `None`: any number.
pub(crate) fn obtainable() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Asks for as many as this process may have, and answers how many it has then.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, ?current, ?maximum, "the limit of open files could not be raised");
            current
        }
    }
}

/// What to say where `limit` is not enough for `config`.
pub(crate) fn too_few(limit: Option<u64>, config: &Config) -> Option<String> {
    let needed = needed(config);
    let limit = limit.filter(|limit| *limit < needed)?;
    let open_tenants_max = config.limits.open_tenants_max;
    Some(format!(
        "this process may have {limit} files open; with limits.open_tenants_max = {open_tenants_max} and its connections it may need {needed}"
    ))
}

/// What to do about it.
pub(crate) const NEXT: &str = "raise the limit of open files (`ulimit -Hn`, LimitNOFILE= of the service, the container runtime's default), or lower limits.open_tenants_max";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_held_against_what_there_is() {
        let mut config = Config::default();
        config.limits.open_tenants_max = 1_000;
        config.limits.connections_max = 100;
        config.limits.in_flight_max = 50;
        assert_eq!(needed(&config), 4_406);
        assert_eq!((too_few(Some(4_406), &config), too_few(None, &config)), (None, None));
        let said = too_few(Some(4_405), &config).unwrap();
        assert!(said.contains("4405") && said.contains("open_tenants_max = 1000"), "{said}");
    }
}
