//! Servers that are not there, and such as take connections and never answer.

use std::{net::TcpListener, time::Duration};

use super::patient::{Patient, in_time};

/// For limits of four seconds each, two of which are met one after the other, on a machine that is much slower than it should be.
const BOUND: Duration = Duration::from_secs(50);

fn point_at(patient: &mut Patient, addr: &str) {
    let url = patient.get("POSTGRES__URL").to_owned();
    let (user, rest) = url.split_once('@').unwrap();
    let (_, database) = rest.split_once('/').unwrap();
    patient.set("POSTGRES__URL", &format!("{user}@{addr}/{database}"));
    patient.set("AZURE__ENDPOINT", &format!("http://{addr}/account"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_answer_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    // A port that was just free.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for addr in [silent.local_addr().unwrap(), closed] {
        let mut patient = Patient::new().await;
        let was = patient.get("POSTGRES__URL").to_owned();
        point_at(&mut patient, &addr.to_string());
        let report = in_time(BOUND, &patient, &["--limit", "4s", "--json"]).await;
        report.assert_fails(&["container.reach", "postgres.reach"], "reach the container");
        for pair in ["postgres.", "container."] {
            report.assert_skips(pair, "reach failed");
        }
        assert_eq!(report.verdict("state_root.writable"), "ok");
        patient.set("POSTGRES__URL", &was);
        patient.end().await;
    }
}
