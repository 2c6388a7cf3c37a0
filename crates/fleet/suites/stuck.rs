//! A replica that is told to go while one tenant is in a call that never returns: it goes in time, and says which one.

use std::time::Duration;

use leasehold_testkit::{PATIENCE, eventually};
use serde_json::json;

use crate::harness::{Fleet, Report, path, tenant};

const TENANTS: usize = 10;
const GRACE: Duration = Duration::from_secs(8);
/// For the end of a process or a container, on a busy machine.
const OVER_GRACE: Duration = Duration::from_secs(4);

const NEVER_ENDS: &str = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers";

#[tokio::test(flavor = "multi_thread")]
async fn one_stuck_tenant_is_named_and_every_other_one_is_handed_over() {
    let fleet = Fleet::new("stuck").await;
    let settings = fleet.settings().with(&[
        ("LEASEHOLD_GRACE_PERIOD", "8s"),
        ("LEASEHOLD_DRAIN_TIMEOUT", "8s"),
        ("LEASEHOLD_LIMITS__STATEMENT_TIME_MAX", "300s"),
    ]);
    fleet.start_with("a", &settings).await;
    for number in 0..TENANTS {
        let appended = fleet.caller("a", &tenant(number)).append(&format!("before-{number}")).await;
        appended.unwrap().done().unwrap();
    }
    let stuck = tenant(3);
    let url = format!("{}{}/query", fleet.launcher.endpoint("a"), path(&stuck));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let call = http.post(url).header("leasehold-timeout", "300s").json(&json!({ "sql": NEVER_ENDS }));
    let call = tokio::spawn(call.send());
    eventually(PATIENCE, "the call is at work", async || {
        fleet.metric("a", "leasehold_tenant_work_in_flight").await >= 1.0
    })
    .await;
    fleet.start_with("b", &settings).await;

    let (ended, took) = fleet.stop_timed("a").await;
    assert_eq!(ended.code, Some(6), "{}", ended.said);
    assert!(took < GRACE + OVER_GRACE, "it took {took:?}");
    let named =
        ended.said.lines().rev().find(|line| line.contains("not flushed") || line.contains("not_flushed"));
    let named = named.unwrap_or_else(|| panic!("nobody is named: {}", ended.said));
    for number in 0..TENANTS {
        let key = tenant(number);
        assert_eq!(named.contains(&key.to_string()), key == stuck, "{key}: {named}");
    }
    drop(call.await);
    // All leases are free: whoever is asked opens at once, and the ones that were flushed have everything.
    for number in 0..TENANTS {
        let key = tenant(number);
        let history = fleet.history("b", &key).await;
        if key != stuck {
            assert_eq!(history, [format!("before-{number}")], "{key}");
        }
    }
    let ended = fleet.stop("b").await;
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let report = Report { requests: u64::try_from(TENANTS).unwrap(), ..Report::default() };
    report
        .note(format!(
            "gone after {:.1} s of a grace period of {GRACE:?}, code 6, one key named",
            took.as_secs_f64()
        ))
        .tell("stuck", fleet.launcher.name());
}
