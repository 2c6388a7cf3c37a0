//! What it takes to forward: the connections to the others, the secret, and what is known of who holds what.

use std::sync::Arc;

use axum::http::{HeaderValue, header::InvalidHeaderValue};
use leasehold_types::{Clock, ReplicaId, Timer};
use tokio::sync::watch;

use super::{
    ending::{Ending, reached},
    moving::OnTheirWay,
    owners::Owners,
    secret::PeerSecrets,
    way::Way,
};
use crate::{Config, ConfigError};

/// How many owners are remembered for each tenant that may be open here.
const OWNERS_PER_TENANT: usize = 4;

/// The way to the other replicas.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// The connections.
    pub(crate) way: Way,
    pub(super) secrets: PeerSecrets,
    /// This replica, as the mark of a forwarded request.
    pub(super) by: HeaderValue,
    pub(super) owners: Owners,
    /// What is being handed to a replica that was named.
    pub(crate) on_their_way: OnTheirWay,
    /// What is not waited for any more, since this replica goes.
    pub(super) ending: watch::Sender<Ending>,
}

impl Forwarding {
    /// The way that `config` gives; `None` where it names no secret. It has to be made in a tokio runtime.
    pub(crate) fn new(
        config: &Config,
        replica: &ReplicaId,
        clock: &Arc<dyn Clock>,
        timer: &Arc<dyn Timer>,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(secrets) = config.peers.secrets()? else { return Ok(None) };
        let by = HeaderValue::from_str(replica.as_str()).map_err(|error: InvalidHeaderValue| {
            ConfigError::Unusable { key: "replica", detail: error.to_string() }
        })?;
        let way = Way::new(config, clock, timer)?;
        let owners = Owners::new(config.limits.open_tenants_max.saturating_mul(OWNERS_PER_TENANT));
        let ending = watch::Sender::new(Ending::Nothing);
        let on_their_way = OnTheirWay::default();
        Ok(Some(Self { way, secrets, by, owners, on_their_way, ending }))
    }

    /// Ends what is forwarded. Followers are told to take their streams up elsewhere, and who waits for an answer that nobody may still
    /// get is told what is known.
    pub(crate) fn end(&self, ending: Ending) {
        self.ending.send_replace(ending);
    }

    /// Completes once no answer of another replica is waited for.
    pub(super) async fn has_no_time(&self) {
        reached(&mut self.ending.subscribe(), Ending::Answers).await;
    }
}
