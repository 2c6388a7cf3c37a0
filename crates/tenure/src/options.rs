//! How a router keeps its tenants.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use leasehold_ledger::LedgerOptions;
use leasehold_snapshot::SnapshotOptions;
use leasehold_types::{ErrorCode, ReplicaId};

use crate::TenureEvent;

/// Told of every transition. A panic in it is caught and logged: no observer can harm a tenure (contract row O1).
pub type Observer = Arc<dyn Fn(&TenureEvent) + Send + Sync>;

/// A duration that a timer takes: whole milliseconds, below 2^31 of them (contract row D6).
const TIMER_MS_MAX: u128 = (1 << 31) - 1;

/// How a router keeps its tenants. [`RouterOptions::new`] gives the defaults that are documented here.
#[derive(Clone)]
pub struct RouterOptions {
    /// Where local ledgers lie: `<state root>/orgs/<org>/tenants/<tenant>/`. One replica's own.
    pub state_root: PathBuf,
    /// This replica.
    pub replica: ReplicaId,
    /// How long a lease runs without a renewal, by the lease store's clock. 10 s.
    pub ttl: Duration,
    /// How much earlier than the store a replica holds its lease for run out. 2 s.
    pub margin: Duration,
    /// How often leases are renewed; `None`: every third of the ttl.
    pub renew_every: Option<Duration>,
    /// Whether leases are renewed at all without being asked. Off only where time is moved by hand.
    pub auto_renew: bool,
    /// How often an image of a changed tenant is published, give or take a tenth; zero: only on demand. 10 s.
    pub snapshot_every: Duration,
    /// How many unpublished bytes bring the next snapshot forward; zero: no matter how many. 16 MiB.
    pub unflushed_bytes_max: u64,
    /// How long a handoff waits for running work: whole milliseconds, from 1 to 2^31 - 1. 30 s.
    pub drain_timeout: Duration,
    /// How many tenants a closing router hands off at a time, in the order in which they were opened. 16.
    pub close_concurrency: usize,
    /// After how long without a call a tenant is handed off; `None`: never.
    pub idle_after: Option<Duration>,
    /// How many uploads of all tenants run at a time. 4.
    pub uploads_max: usize,
    /// How long one upload may take. 10 minutes.
    pub upload_timeout: Duration,
    /// How many tenants may be open at a time. 10,000.
    pub open_tenants_max: usize,
    /// The ledgers' limits.
    pub ledger: LedgerOptions,
    /// How images are kept.
    pub snapshot: SnapshotOptions,
    /// Who is told of transitions.
    pub observer: Option<Observer>,
}

impl RouterOptions {
    /// The defaults.
    #[must_use]
    pub fn new(state_root: PathBuf, replica: ReplicaId) -> Self {
        Self {
            state_root,
            replica,
            ttl: Duration::from_secs(10),
            margin: Duration::from_secs(2),
            renew_every: None,
            auto_renew: true,
            snapshot_every: Duration::from_secs(10),
            unflushed_bytes_max: 16 << 20,
            drain_timeout: Duration::from_secs(30),
            close_concurrency: 16,
            idle_after: None,
            uploads_max: 4,
            upload_timeout: Duration::from_secs(600),
            open_tenants_max: 10_000,
            ledger: LedgerOptions::default(),
            snapshot: SnapshotOptions::default(),
            observer: None,
        }
    }

    /// How often leases are renewed.
    #[must_use]
    pub fn renew_interval(&self) -> Duration {
        self.renew_every.unwrap_or(self.ttl / 3)
    }

    /// Whether these can be used together.
    pub fn validate(&self) -> Result<(), OptionsError> {
        let refuse = |option, found: &dyn fmt::Debug, rule| {
            Err(OptionsError { option, found: format!("{found:?}"), rule })
        };
        let timed = |wait: Duration| {
            wait.as_millis() >= 1
                && wait.as_millis() <= TIMER_MS_MAX
                && wait.subsec_nanos().is_multiple_of(1_000_000)
        };
        if !self.state_root.is_absolute() {
            return refuse("state_root", &self.state_root, "an absolute path");
        }
        if !timed(self.ttl) || self.ttl > Duration::from_secs(86_400) {
            return refuse("ttl", &self.ttl, "whole milliseconds, from 1 ms to 1 day");
        }
        if self.margin.is_zero() || self.margin >= self.ttl {
            return refuse("margin", &self.margin, "more than zero and less than ttl");
        }
        if !timed(self.renew_interval()) && self.renew_every.is_some() {
            return refuse("renew_every", &self.renew_every, "whole milliseconds, from 1 to 2^31 - 1");
        }
        if self.renew_interval() >= self.ttl.saturating_sub(self.margin) {
            return refuse("renew_every", &self.renew_interval(), "less than ttl - margin");
        }
        if !self.snapshot_every.is_zero() && !timed(self.snapshot_every) {
            return refuse(
                "snapshot_every",
                &self.snapshot_every,
                "zero, or whole milliseconds up to 2^31 - 1",
            );
        }
        if !timed(self.drain_timeout) {
            return refuse("drain_timeout", &self.drain_timeout, "whole milliseconds, from 1 to 2^31 - 1");
        }
        if !timed(self.upload_timeout) {
            return refuse("upload_timeout", &self.upload_timeout, "whole milliseconds, from 1 to 2^31 - 1");
        }
        if self.idle_after.is_some_and(|after| !timed(after)) {
            return refuse("idle_after", &self.idle_after, "whole milliseconds, from 1 to 2^31 - 1");
        }
        for (option, count) in [
            ("close_concurrency", self.close_concurrency),
            ("uploads_max", self.uploads_max),
            ("open_tenants_max", self.open_tenants_max),
        ] {
            if count == 0 {
                return refuse(option, &count, "at least 1");
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RouterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterOptions")
            .field("state_root", &self.state_root)
            .field("replica", &self.replica)
            .field("ttl", &self.ttl)
            .field("margin", &self.margin)
            .field("snapshot_every", &self.snapshot_every)
            .field("drain_timeout", &self.drain_timeout)
            .finish_non_exhaustive()
    }
}

/// An option that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} is {found}, it has to be {rule}")]
pub struct OptionsError {
    /// The option's name.
    pub option: &'static str,
    /// What it was set to.
    pub found: String,
    /// What it may be set to.
    pub rule: &'static str,
}

impl OptionsError {
    /// The stable code: `invalid_configuration`.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        ErrorCode::InvalidConfiguration
    }
}
