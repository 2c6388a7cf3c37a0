//! What does not go together, named by its key.

use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::{AuthMode, BackendPair, Config};
use crate::{ConfigError, Edges};

/// The longest duration that may be set: beyond it a number is a slip.
const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The drain time-out's bound (contract row D6).
const DRAIN_TIMEOUT_MAX: Duration = Duration::from_millis((1 << 31) - 1);
/// What requests need beside their bodies.
const MEMORY_BYTES_MIN: u64 = 1024 * 1024;
/// The smallest ledger that may be asked for: an empty one has some 32 KiB.
const LEDGER_BYTES_MIN: u64 = 1024 * 1024;

impl Config {
    /// Refuses what cannot be used or does not go together.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, detail: String| Err(ConfigError::Unusable { key, detail });
        if self.margin >= self.ttl {
            return refuse(
                "margin",
                format!("{:?} is not shorter than the ttl of {:?}", self.margin, self.ttl),
            );
        }
        if self.renew_every.is_some_and(|every| every >= self.ttl.saturating_sub(self.margin)) {
            return refuse("renew_every", "a lease would run out between two renewals".to_owned());
        }
        if self.drain_timeout > DRAIN_TIMEOUT_MAX
            || !self.drain_timeout.subsec_nanos().is_multiple_of(1_000_000)
        {
            return refuse("drain_timeout", "whole milliseconds, at the most 2^31 - 1".to_owned());
        }
        if self.drain_timeout > self.grace_period {
            return refuse(
                "drain_timeout",
                format!(
                    "{:?} is longer than the grace_period of {:?}: a shutdown would be over before a handoff gives up",
                    self.drain_timeout, self.grace_period
                ),
            );
        }
        self.check_durations()?;
        self.check_counts()?;
        self.placement.slack()?;
        self.auth.check()?;
        if self.limits.ledger_bytes_max < LEDGER_BYTES_MIN {
            return refuse(
                "limits.ledger_bytes_max",
                format!("less than {LEDGER_BYTES_MIN}: no ledger is of use in it"),
            );
        }
        // An eighth of it is spared for requests without a body, and a body is held more than once.
        let memory_min =
            (self.limits.body_bytes_max as u64).saturating_mul(5).saturating_add(MEMORY_BYTES_MIN);
        if self.limits.memory_bytes_max.is_some_and(|bytes| bytes < memory_min) {
            return refuse(
                "limits.memory_bytes_max",
                format!(
                    "less than {memory_min}: the longest body would never be taken (five times limits.body_bytes_max and 1 MiB)"
                ),
            );
        }
        if self.auth.mode == AuthMode::None && !self.listen_addr().ip().is_loopback() {
            return Err(ConfigError::NotLoopback { listen: self.listen_addr() });
        }
        if let Some(endpoint) = &self.endpoint
            && !(endpoint.starts_with("http://") || endpoint.starts_with("https://"))
        {
            return refuse("endpoint", format!("`{endpoint}` does not begin with http:// or https://"));
        }
        self.tls.files()?;
        self.peers.check(self.listen_addr())?;
        self.peers.secrets()?;
        if self.tls.is_on()
            && let Some(endpoint) =
                self.endpoint.as_ref().filter(|endpoint| !endpoint.starts_with("https://"))
        {
            return refuse(
                "endpoint",
                format!(
                    "`{endpoint}` does not begin with https://, and with `[tls]` this replica answers nothing else"
                ),
            );
        }
        EnvFilter::try_new(&self.log.filter)
            .map_err(|source| ConfigError::Unusable { key: "log.filter", detail: source.to_string() })?;
        if let BackendPair::Cloud { postgres, azure } = self.pair()? {
            postgres.options()?;
            azure.options(&Edges::system())?;
        }
        Ok(())
    }

    fn check_durations(&self) -> Result<(), ConfigError> {
        let mut positive = vec![
            ("ttl", self.ttl),
            ("margin", self.margin),
            ("renew_every", self.renew_every.unwrap_or(self.ttl)),
            ("drain_timeout", self.drain_timeout),
            ("grace_period", self.grace_period),
            ("idle_after", self.idle_after.unwrap_or(self.ttl)),
            ("snapshot.upload_timeout", self.snapshot.upload_timeout),
            ("limits.body_time_max", self.limits.body_time_max),
            ("limits.statement_time_max", self.limits.statement_time_max),
            ("limits.timeout_max", self.limits.timeout_max),
            ("limits.rate_burst", self.limits.rate_burst),
            ("limits.head_time_max", self.limits.head_time_max),
            ("limits.keep_alive_time_max", self.limits.keep_alive_time_max),
            ("limits.stall_time_max", self.limits.stall_time_max),
            ("follow.heartbeat_every", self.follow.heartbeat_every),
            ("peers.connect_timeout", self.peers.connect_timeout),
            ("placement.moves_pause", self.placement.moves_pause),
            ("auth.refresh_every", self.auth.refresh_every),
        ];
        if let Some(postgres) = &self.postgres {
            positive.extend([
                ("postgres.connect_timeout", postgres.connect_timeout),
                ("postgres.statement_timeout", postgres.statement_timeout),
                ("postgres.lock_timeout", postgres.lock_timeout),
            ]);
        }
        if let Some(azure) = &self.azure {
            positive.extend([
                ("azure.request_timeout", azure.request_timeout),
                ("azure.retry_for", azure.retry_for),
            ]);
        }
        for (key, duration) in positive {
            if duration.is_zero() {
                return Err(ConfigError::Unusable { key, detail: "zero".to_owned() });
            }
            if duration > DURATION_MAX && key != "drain_timeout" {
                return Err(ConfigError::Unusable { key, detail: "more than a day".to_owned() });
            }
        }
        let zero_is_meant =
            [("snapshot.every", self.snapshot.every), ("placement.warm_within", self.placement.warm_within)];
        match zero_is_meant.into_iter().find(|(_, duration)| *duration > DURATION_MAX) {
            Some((key, _)) => Err(ConfigError::Unusable { key, detail: "more than a day".to_owned() }),
            None => Ok(()),
        }
    }

    fn check_counts(&self) -> Result<(), ConfigError> {
        let limits = &self.limits;
        let counts = [
            ("snapshot.uploads_max", self.snapshot.uploads_max),
            ("snapshot.close_concurrency", self.snapshot.close_concurrency),
            ("limits.body_bytes_max", limits.body_bytes_max),
            ("limits.import_bytes_max", usize::try_from(limits.import_bytes_max).unwrap_or(usize::MAX)),
            ("limits.batch_events_max", limits.batch_events_max),
            ("limits.page_events_max", limits.page_events_max as usize),
            ("limits.rows_max", limits.rows_max),
            ("limits.result_bytes_max", limits.result_bytes_max),
            ("limits.in_flight_max", limits.in_flight_max),
            ("limits.in_flight_per_tenant_max", limits.in_flight_per_tenant_max),
            ("limits.in_flight_per_caller_max", limits.in_flight_per_caller_max),
            ("limits.rate_keys_max", limits.rate_keys_max),
            ("limits.parked_max", limits.parked_max),
            ("limits.connections_max", limits.connections_max),
            ("limits.connections_per_peer_max", limits.connections_per_peer_max),
            ("limits.open_tenants_max", limits.open_tenants_max),
            ("follow.followers_max", self.follow.followers_max),
            ("placement.moves_max", self.placement.moves_max),
            ("follow.followers_per_tenant_max", self.follow.followers_per_tenant_max),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((key, _)) => Err(ConfigError::Unusable { key, detail: "zero".to_owned() }),
            None => Ok(()),
        }
    }
}
