//! Clients that go away in the middle of an open, a forward, a follow and a forget: nothing is left behind, and the forget completes.

use std::time::Duration;

use leasehold_testkit::{PATIENCE, eventually, pass};
use reqwest::Method;
use serde_json::json;

use crate::harness::{Fleet, REPLICAS, Report, path, tenant};

const TENANTS: usize = 24;
const ROUNDS: usize = 4;
/// Files that come and go by themselves: connections to the servers, and to other replicas.
const ALLOWANCE: usize = 40;

/// What a client began and did not wait for.
#[derive(Clone, Copy, Debug)]
enum Begun {
    Open,
    Forward,
    Follow,
    Forget,
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_leave_nothing_behind() {
    let fleet = Fleet::new("disconnecting").await;
    fleet.start(&REPLICAS).await;
    // Everything that is made once is made.
    for number in 0..TENANTS {
        fleet.append_at(&fleet.launcher.endpoint("a"), &tenant(number), "first", PATIENCE).await.unwrap();
    }
    let before: Vec<_> = REPLICAS.map(|replica| fleet.launcher.descriptors(replica)).into();
    let mut begun = 0;
    for round in 0..ROUNDS {
        for number in 0..TENANTS {
            let what = [Begun::Open, Begun::Forward, Begun::Follow, Begun::Forget][(number + round) % 4];
            let base = fleet.launcher.endpoint(REPLICAS[number % 3]);
            // Here and there in the middle: from before the first byte is read to just before the answer.
            let after = Duration::from_millis(u64::try_from((number * 7 + round * 3) % 23).unwrap());
            leave(&fleet, &base, number, what, after).await;
            begun += 1;
        }
    }

    for replica in REPLICAS {
        for gauge in ["leasehold_requests_in_flight", "leasehold_followers"] {
            let what = format!("{gauge} of {replica} comes down");
            // Asking is a request too.
            eventually(PATIENCE, &what, async || fleet.metric(replica, gauge).await <= 1.0).await;
        }
    }
    // A forget that was begun completes, whoever waits for it; and everything else goes on.
    for number in 0..TENANTS {
        let key = tenant(number);
        let base = fleet.launcher.endpoint("a");
        let url = format!("{base}{}", path(&key));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let receipt = http.delete(&url).header("leasehold-timeout", "60s").send().await.unwrap();
        assert!(receipt.status().is_success(), "{key}: {}", receipt.text().await.unwrap());
        let refused = fleet.append_at(&base, &key, "after", PATIENCE).await.unwrap();
        assert_eq!(refused.status().as_u16(), 410, "{key}");
        let made = http.put(&url).header("leasehold-timeout", "60s").send().await.unwrap();
        assert!(made.status().is_success(), "{key}: {}", made.text().await.unwrap());
        let anew = fleet.append_at(&base, &key, "anew", PATIENCE).await.unwrap();
        assert!(anew.status().is_success(), "{key}: {}", anew.text().await.unwrap());
    }
    let mut files = Vec::new();
    for (replica, before) in REPLICAS.into_iter().zip(before) {
        match before {
            Err(why) => why.tell("disconnecting (open files)"),
            Ok(before) => {
                let what = format!("{replica} had {before} files open");
                eventually(PATIENCE, &what, async || {
                    pass(Duration::from_millis(200)).await;
                    fleet.launcher.descriptors(replica).unwrap() <= before + ALLOWANCE
                })
                .await;
                files.push(format!("{replica} {before} → {}", fleet.launcher.descriptors(replica).unwrap()));
            }
        }
    }
    for replica in REPLICAS {
        let ended = fleet.stop(replica).await;
        assert_eq!(ended.code, Some(0), "{replica}: {}", ended.said);
    }
    let requests = u64::try_from(begun).unwrap();
    let mut report =
        Report { requests, ..Report::default() }.note("every request was left before its answer");
    if !files.is_empty() {
        report = report.note(format!("open files {}", files.join(", ")));
    }
    report.tell("disconnecting", fleet.launcher.name());
}

/// Begins it, and goes after so long.
async fn leave(fleet: &Fleet, base: &str, number: usize, what: Begun, after: Duration) {
    let key = tenant(number);
    let url = format!("{base}{}", path(&key));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = match what {
        Begun::Open => http.put(&url),
        Begun::Forward => http.post(format!("{url}/events")).json(
            &json!({ "kind": "fleet.write", "actor": "fleet", "payload": { "text": "x".repeat(200_000) } }),
        ),
        Begun::Follow => http.get(format!("{url}/events")).header("accept", "text/event-stream"),
        Begun::Forget => http.request(Method::DELETE, &url),
    };
    if matches!(what, Begun::Open) {
        // Nobody has it open: it is opened for this request.
        let handed =
            http.post(format!("{url}/handoff")).header("leasehold-timeout", "60s").send().await.unwrap();
        assert!(
            handed.status().is_success() || handed.status().as_u16() == 410,
            "{key}: {}",
            handed.text().await.unwrap()
        );
    }
    let sent = tokio::spawn(async move { request.send().await.map(drop) });
    pass(after).await;
    sent.abort();
    let _ = fleet;
}
