//! What bounds callers.

use std::time::Duration;

use serde::Deserialize;

/// Bounds. Past each of them the answer is 413 or 429, never memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Bytes that requests, their bodies and their answers may hold at the same time; none: a quarter of what the process may have.
    pub memory_bytes_max: Option<u64>,
    /// Bytes of a request's body.
    pub body_bytes_max: usize,
    /// Bytes of an imported ledger.
    pub import_bytes_max: u64,
    /// Bytes of a tenant's ledger.
    pub ledger_bytes_max: u64,
    /// How long a body may take to arrive.
    #[serde(with = "humantime_serde")]
    pub body_time_max: Duration,
    /// Events of a batch.
    pub batch_events_max: usize,
    /// Events of a page.
    pub page_events_max: u32,
    /// Rows of a result.
    pub rows_max: usize,
    /// Bytes of a result.
    pub result_bytes_max: usize,
    /// How long a statement may run.
    #[serde(with = "humantime_serde")]
    pub statement_time_max: Duration,
    /// Requests at work on this replica.
    pub in_flight_max: usize,
    /// Requests at work for one tenant.
    pub in_flight_per_tenant_max: usize,
    /// Requests at work for one caller.
    pub in_flight_per_caller_max: usize,
    /// Requests a second of one caller; 0: no such bound.
    pub rate_per_caller: u32,
    /// Requests a second for one tenant; 0: no such bound.
    pub rate_per_tenant: u32,
    /// Requests a second of one address whose senders are not known; 0: no such bound.
    pub rate_failures_per_peer: u32,
    /// For how long of a rate may come at once what did not come before.
    #[serde(with = "humantime_serde")]
    pub rate_burst: Duration,
    /// Callers, and tenants, that are counted at the same time.
    pub rate_keys_max: usize,
    /// Requests that wait for a tenant to settle.
    pub parked_max: usize,
    /// The longest `Leasehold-Timeout`.
    #[serde(with = "humantime_serde")]
    pub timeout_max: Duration,
    /// Open connections.
    pub connections_max: usize,
    /// Open connections of one address: an IPv4 one, or all of an IPv6 /64.
    pub connections_per_peer_max: usize,
    /// How long the head of a request may take, from its first byte or the connection's beginning.
    #[serde(with = "humantime_serde")]
    pub head_time_max: Duration,
    /// How long a connection may wait for its next request.
    #[serde(with = "humantime_serde")]
    pub keep_alive_time_max: Duration,
    /// How long a client may take nothing of its answer.
    #[serde(with = "humantime_serde")]
    pub stall_time_max: Duration,
    /// Tenants that are open here at the same time.
    pub open_tenants_max: usize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            memory_bytes_max: None,
            body_bytes_max: 8 * 1024 * 1024,
            import_bytes_max: 1024 * 1024 * 1024,
            ledger_bytes_max: 1024 * 1024 * 1024,
            body_time_max: Duration::from_secs(30),
            batch_events_max: 1_000,
            page_events_max: 1_000,
            rows_max: 10_000,
            result_bytes_max: 16 * 1024 * 1024,
            statement_time_max: Duration::from_secs(10),
            in_flight_max: 1_024,
            in_flight_per_tenant_max: 256,
            in_flight_per_caller_max: 512,
            rate_per_caller: 0,
            rate_per_tenant: 0,
            rate_failures_per_peer: 50,
            rate_burst: Duration::from_secs(5),
            rate_keys_max: 100_000,
            parked_max: 512,
            timeout_max: Duration::from_secs(300),
            connections_max: 4_096,
            connections_per_peer_max: 2_048,
            head_time_max: Duration::from_secs(10),
            keep_alive_time_max: Duration::from_secs(75),
            stall_time_max: Duration::from_secs(30),
            open_tenants_max: 10_000,
        }
    }
}
