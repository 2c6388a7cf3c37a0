//! What watches over a replica is told.

use std::path::Path;

use crate::served::{Served, path_of};

const TENANT: &str = "acme/user-1";

async fn metrics(served: &Served) -> String {
    let answered = served.get("/metrics").await;
    assert_eq!(answered.status, 200);
    assert!(answered.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    String::from_utf8(answered.body).unwrap()
}

#[tokio::test]
async fn metrics_count_what_happens_and_name_no_tenant() {
    let served = Served::alone_with(|config| config.snapshot.every = std::time::Duration::ZERO).await;
    served.append(TENANT, "a").await;
    let text = metrics(&served).await;
    assert!(text.contains("leasehold_tenants_open 1\n"), "{text}");
    let unflushed =
        text.lines().find_map(|line| line.strip_prefix("leasehold_unflushed_bytes_max ")).unwrap();
    assert!(unflushed.parse::<u64>().unwrap() > 0);
    let age =
        text.lines().find_map(|line| line.strip_prefix("leasehold_unpublished_age_max_seconds ")).unwrap();
    assert!(age.parse::<f64>().unwrap() > 0.0);
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    served.delete(&path_of(TENANT)).await.ok(200);
    served.get("/nothing").await.problem(404, "not_found");
    let text = metrics(&served).await;
    for line in [
        "leasehold_http_requests_total{method=\"POST\",route=\"/v1/orgs/{org}/tenants/{tenant}/events\",status=\"201\"} 1",
        "leasehold_http_requests_total{method=\"GET\",route=\"(none)\",status=\"404\"} 1",
        "leasehold_tenants_open 0",
        "leasehold_snapshots_published_total 1",
        "leasehold_tenants_released_total{flushed=\"true\"} 1",
        "leasehold_tenants_forgotten_total 1",
        "leasehold_unflushed_bytes 0",
        "leasehold_unpublished_age_max_seconds 0.0",
        "leasehold_handoff_closed_seconds_count 1",
        "leasehold_move_write_gap_seconds_count 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("user-1") && !text.contains("acme"), "{text}");
    assert!(text.ends_with("# EOF\n"));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

/// Each of them stands in an alert rule of the chart, which asks whether it rose: one that appears with its first count never does.
#[tokio::test]
async fn what_alerts_count_begins_at_zero() {
    let text = metrics(&Served::alone().await).await;
    for series in [
        "leases_lapsed_total",
        "leases_lost_total",
        "handoffs_failed_total",
        "drain_timeouts_total",
        "tenants_released_total{flushed=\"true\"}",
        "tenants_released_total{flushed=\"false\"}",
        "snapshots_failed_total{code=\"blob_store_unavailable\"}",
    ] {
        assert!(
            text.lines().any(|line| line == format!("leasehold_{series} 0")),
            "{series} is not in\n{text}"
        );
    }
}

#[tokio::test]
async fn health_and_readiness_are_apart() {
    let served = Served::alone().await;
    assert_eq!(served.get("/healthz").await.ok(200)["status"], "ok");
    assert_eq!(served.get("/readyz").await.ok(200)["status"], "ok");
    served.post("/v1/drain").await.ok(200);
    served.get("/healthz").await.ok(200);
    served.get("/readyz").await.ok(503);
}

#[tokio::test]
async fn the_committed_document_is_the_served_one() {
    let served = Served::alone().await;
    let document = String::from_utf8(served.get("/openapi.json").await.body).unwrap();
    assert_eq!(document, leasehold_server::openapi_json());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
    if std::env::var_os("LEASEHOLD_WRITE_OPENAPI").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == document,
        "openapi.json is not what the routes say; write it anew: LEASEHOLD_WRITE_OPENAPI=1 cargo test -p leasehold-server openapi"
    );
}
