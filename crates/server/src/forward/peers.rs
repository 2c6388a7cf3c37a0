//! What it takes to forward: the connections to the others, the secret, and what is known of who holds what.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderValue, header::InvalidHeaderValue},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use leasehold_types::ReplicaId;
use tokio::sync::watch;

use super::{
    ending::{Ending, reached},
    moving::OnTheirWay,
    owners::Owners,
    secret::PeerSecrets,
};
use crate::{Config, ConfigError};

/// How many connections to one replica wait for their next request.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long one waits.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How many owners are remembered for each tenant that may be open here.
const OWNERS_PER_TENANT: usize = 4;

/// The way to the other replicas.
#[derive(Debug)]
pub(crate) struct Forwarding {
    pub(super) http: Client<HttpConnector, Body>,
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
    pub(crate) fn new(config: &Config, replica: &ReplicaId) -> Result<Option<Self>, ConfigError> {
        let Some(secrets) = config.peers.secrets()? else { return Ok(None) };
        let by = HeaderValue::from_str(replica.as_str()).map_err(|error: InvalidHeaderValue| {
            ConfigError::Unusable { key: "replica", detail: error.to_string() }
        })?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(config.peers.connect_timeout));
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            // Shorter than the other replica waits, which is configured alike: a request never begins on what it closes.
            .pool_idle_timeout(IDLE_MAX.min(config.limits.keep_alive_time_max / 2))
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector);
        let owners = Owners::new(config.limits.open_tenants_max.saturating_mul(OWNERS_PER_TENANT));
        let ending = watch::Sender::new(Ending::Nothing);
        let on_their_way = OnTheirWay::default();
        Ok(Some(Self { http, secrets, by, owners, on_their_way, ending }))
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
