//! What a replica counts, in the Prometheus text format.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use leasehold_tenure::{Router, TenureEvent};
use leasehold_types::{Clock, ErrorCode};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

use crate::{
    connections::ConnectionCounters, forward::ForwardCounters, memory::MemoryCounters, panics,
    placement::PlacementCounters, tls::TlsCounters,
};

/// The label values of a request: the route's template, never a path, so that there are as many as there are routes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlushedLabel {
    flushed: &'static str,
}

/// The counters, fed by requests and by the router's observer; the gauges are read from the router when somebody asks.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram>,
    refused: Family<CodeLabel, Counter>,
    in_flight: Gauge,
    followers: Gauge,
    tenants_open: Gauge,
    work_in_flight: Gauge,
    unflushed_bytes: Gauge,
    unflushed_bytes_max: Gauge,
    snapshot_age_seconds_max: Gauge<f64, AtomicU64>,
    unpublished_age_seconds_max: Gauge<f64, AtomicU64>,
    acquired: Counter,
    renewals: Counter,
    lapsed: Counter,
    resumed: Counter,
    lost: Counter,
    released: Family<FlushedLabel, Counter>,
    pub(crate) handoffs_failed: Counter,
    drain_timeouts: Counter,
    write_gap_seconds: Histogram,
    handoff_closed_seconds: Histogram,
    snapshots: Counter,
    snapshots_failed: Family<CodeLabel, Counter>,
    snapshot_bytes: Counter,
    snapshot_seconds: Histogram,
    forgotten: Counter,
    swept_objects: Counter,
    sweeps_failed: Counter,
    callers_refused: Family<CodeLabel, Counter>,
    pub(crate) forward: ForwardCounters,
    pub(crate) connections: Arc<ConnectionCounters>,
    pub(crate) memory: MemoryCounters,
    pub(crate) placement: PlacementCounters,
    pub(crate) tls: TlsCounters,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// From half a millisecond to 16 seconds.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 2.0, 16))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("leasehold");
        let metrics = Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(seconds),
            refused: Family::default(),
            in_flight: Gauge::default(),
            followers: Gauge::default(),
            tenants_open: Gauge::default(),
            work_in_flight: Gauge::default(),
            unflushed_bytes: Gauge::default(),
            unflushed_bytes_max: Gauge::default(),
            snapshot_age_seconds_max: Gauge::default(),
            unpublished_age_seconds_max: Gauge::default(),
            acquired: Counter::default(),
            renewals: Counter::default(),
            lapsed: Counter::default(),
            resumed: Counter::default(),
            lost: Counter::default(),
            released: Family::default(),
            handoffs_failed: Counter::default(),
            drain_timeouts: Counter::default(),
            write_gap_seconds: seconds(),
            handoff_closed_seconds: seconds(),
            snapshots: Counter::default(),
            snapshots_failed: Family::default(),
            snapshot_bytes: Counter::default(),
            snapshot_seconds: seconds(),
            forgotten: Counter::default(),
            swept_objects: Counter::default(),
            sweeps_failed: Counter::default(),
            callers_refused: Family::default(),
            forward: ForwardCounters::default(),
            connections: Arc::default(),
            memory: MemoryCounters::default(),
            placement: PlacementCounters::default(),
            tls: TlsCounters::default(),
            registry: Registry::default(),
        };
        registry.register("http_requests", "Answered requests", metrics.requests.clone());
        registry.register_with_unit(
            "http_request",
            "Time until an answer began",
            Unit::Seconds,
            metrics.request_seconds.clone(),
        );
        registry.register(
            "http_requests_refused",
            "Requests that were one too many of their caller or for their tenant",
            metrics.refused.clone(),
        );
        registry.register("http_requests_in_flight", "Requests at work", metrics.in_flight.clone());
        registry.register("followers", "Event streams", metrics.followers.clone());
        registry.register("tenants_open", "Tenants open on this replica", metrics.tenants_open.clone());
        registry.register(
            "tenant_work_in_flight",
            "Calls into open tenants' ledgers",
            metrics.work_in_flight.clone(),
        );
        registry.register(
            "unflushed_bytes",
            "Bytes not yet in a published snapshot, all open tenants",
            metrics.unflushed_bytes.clone(),
        );
        registry.register(
            "unflushed_bytes_max",
            "Bytes not yet in a published snapshot, the open tenant with the most",
            metrics.unflushed_bytes_max.clone(),
        );
        registry.register_with_unit(
            "snapshot_age_max",
            "Age of the last published snapshot, the oldest of the open tenants with unpublished bytes",
            Unit::Seconds,
            metrics.snapshot_age_seconds_max.clone(),
        );
        registry.register_with_unit(
            "unpublished_age_max",
            "Age of the oldest write that is in no published snapshot, all open tenants",
            Unit::Seconds,
            metrics.unpublished_age_seconds_max.clone(),
        );
        registry.register(
            "panics",
            "Panics of this process, each contained to what met it",
            panics::counter(),
        );
        registry.register(
            "callers_refused",
            "Requests of callers that are not known, or may not do what they ask for",
            metrics.callers_refused.clone(),
        );
        metrics.register_tenures(&mut registry);
        metrics.forward.register(&mut registry);
        metrics.connections.register(&mut registry);
        metrics.memory.register(&mut registry);
        metrics.placement.register(&mut registry);
        metrics.tls.register(&mut registry);
        metrics.begin_at_zero();
        Self { registry, ..metrics }
    }

    /// What becomes of tenants.
    fn register_tenures(&self, registry: &mut Registry) {
        registry.register("tenants_acquired", "Tenants that began to be served", self.acquired.clone());
        registry.register("lease_renewals", "Granted renewals", self.renewals.clone());
        registry.register("leases_lapsed", "Leases that passed their deadline", self.lapsed.clone());
        registry.register("leases_resumed", "Lapsed leases that were resumed", self.resumed.clone());
        registry.register("leases_lost", "Leases that went to another tenure", self.lost.clone());
        registry.register("tenants_released", "Tenants handed back", self.released.clone());
        registry.register(
            "handoffs_failed",
            "Handoffs after which the tenant stayed",
            self.handoffs_failed.clone(),
        );
        registry.register(
            "drain_timeouts",
            "Handoffs that gave up waiting for work",
            self.drain_timeouts.clone(),
        );
        registry.register_with_unit(
            "move_write_gap",
            "Moves to a replica that was named: time from the last moment at which this replica could acknowledge a write until the other one said that it serves",
            Unit::Seconds,
            self.write_gap_seconds.clone(),
        );
        registry.register_with_unit(
            "handoff_closed",
            "Handoffs: time from the last moment at which this replica could acknowledge a write until the lease was free",
            Unit::Seconds,
            self.handoff_closed_seconds.clone(),
        );
        registry.register("snapshots_published", "Published snapshots", self.snapshots.clone());
        registry.register("snapshots_failed", "Failed uploads", self.snapshots_failed.clone());
        registry.register("snapshot_uploaded_bytes", "Uploaded bytes", self.snapshot_bytes.clone());
        registry.register_with_unit(
            "snapshot_upload",
            "Time from taking an image to its manifest",
            Unit::Seconds,
            self.snapshot_seconds.clone(),
        );
        registry.register("tenants_forgotten", "Tenants forgotten", self.forgotten.clone());
        registry.register("swept_objects", "Objects deleted by sweeps", self.swept_objects.clone());
        registry.register("sweeps_failed", "Failed sweeps", self.sweeps_failed.clone());
    }

    /// A series that is not there until it counts one never rises for an alert that asks for an increase.
    fn begin_at_zero(&self) {
        for flushed in ["true", "false"] {
            drop(self.released.get_or_create(&FlushedLabel { flushed }));
        }
        for code in [ErrorCode::RateLimited, ErrorCode::Overloaded] {
            drop(self.refused.get_or_create(&CodeLabel { code: code.as_str() }));
        }
        for code in [ErrorCode::Unauthenticated, ErrorCode::Forbidden] {
            drop(self.callers_refused.get_or_create(&CodeLabel { code: code.as_str() }));
        }
        let code = ErrorCode::BlobStoreUnavailable.as_str();
        drop(self.snapshots_failed.get_or_create(&CodeLabel { code }));
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        let route = route.to_owned();
        self.requests.get_or_create(&RequestLabels { method, route: route.clone(), status }).inc();
        self.request_seconds.get_or_create(&RouteLabels { method, route }).observe(took.as_secs_f64());
    }

    /// Counts a request that was one too many.
    pub(crate) fn refused(&self, code: ErrorCode) {
        self.refused.get_or_create(&CodeLabel { code: code.as_str() }).inc();
    }

    /// Counts a caller that was turned away.
    pub(crate) fn caller_refused(&self, code: ErrorCode) {
        self.callers_refused.get_or_create(&CodeLabel { code: code.as_str() }).inc();
    }

    /// Counts a move that is complete (decision 0037).
    pub(crate) fn moved(&self, gap: Duration) {
        self.write_gap_seconds.observe(gap.as_secs_f64());
    }

    /// Counts what the router tells.
    pub(crate) fn observe(&self, event: &TenureEvent) {
        match event {
            TenureEvent::Acquired { .. } => _ = self.acquired.inc(),
            TenureEvent::Renewed { .. } => _ = self.renewals.inc(),
            TenureEvent::Lapsed { .. } => _ = self.lapsed.inc(),
            TenureEvent::Resumed { .. } => _ = self.resumed.inc(),
            TenureEvent::Lost { .. } => _ = self.lost.inc(),
            TenureEvent::SnapshotPublished { bytes, took, .. } => {
                self.snapshots.inc();
                self.snapshot_bytes.inc_by(*bytes);
                self.snapshot_seconds.observe(took.as_secs_f64());
            }
            TenureEvent::SnapshotFailed { code, .. } => {
                self.snapshots_failed.get_or_create(&CodeLabel { code: code.as_str() }).inc();
            }
            TenureEvent::DrainTimeout { .. } => _ = self.drain_timeouts.inc(),
            TenureEvent::Released { flushed, closed_for, .. } => {
                if let Some(closed_for) = closed_for {
                    self.handoff_closed_seconds.observe(closed_for.as_secs_f64());
                }
                let flushed = if *flushed { "true" } else { "false" };
                self.released.get_or_create(&FlushedLabel { flushed }).inc();
            }
            TenureEvent::Swept { objects, .. } => _ = self.swept_objects.inc_by(*objects),
            TenureEvent::SweepFailed { .. } => _ = self.sweeps_failed.inc(),
            TenureEvent::Forgotten { .. } => _ = self.forgotten.inc(),
            // Events are added.
            _ => {}
        }
    }

    /// Everything as text, the gauges as they stand now.
    pub(crate) fn encode(
        &self,
        router: &Router,
        in_flight: usize,
        followers: usize,
        clock: &dyn Clock,
    ) -> Result<String, ErrorCode> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let handles = router.handles();
        let (mut bytes, mut bytes_max, mut work) = (0_u64, 0_u64, 0_u64);
        let (mut age_max, mut unpublished_max) = (Duration::ZERO, Duration::ZERO);
        for handle in &handles {
            let status = handle.status();
            bytes = bytes.saturating_add(status.unflushed_bytes);
            bytes_max = bytes_max.max(status.unflushed_bytes);
            work += u64::from(status.in_flight);
            unpublished_max = unpublished_max.max(status.unpublished_for);
            if let Some(published) = status.published
                && status.unflushed_bytes > 0
            {
                age_max = age_max.max(clock.wall().since(published.at));
            }
        }
        self.tenants_open.set(count(handles.len()));
        self.in_flight.set(count(in_flight));
        self.followers.set(count(followers));
        self.work_in_flight.set(i64::try_from(work).unwrap_or(i64::MAX));
        self.unflushed_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.unflushed_bytes_max.set(i64::try_from(bytes_max).unwrap_or(i64::MAX));
        self.snapshot_age_seconds_max.set(age_max.as_secs_f64());
        self.unpublished_age_seconds_max.set(unpublished_max.as_secs_f64());
        let mut text = String::new();
        encode(&mut text, &self.registry).map_err(|_| ErrorCode::Internal)?;
        Ok(text)
    }
}
