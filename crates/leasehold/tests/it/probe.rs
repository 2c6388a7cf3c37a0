//! What a health check learns that can only start the binary.

use crate::{
    impostor::{answer, answering},
    process::{Replica, command, leasehold},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_serves_is_alive_and_ready_and_one_that_is_gone_is_neither() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    let endpoint = replica.endpoint.clone();
    let listen = endpoint.trim_start_matches("http://");
    for what in ["alive", "ready"] {
        let ended = leasehold(["probe", what, "--endpoint", &endpoint]).await.assert(0);
        assert_eq!(ended.out, "ok\n");
        // As in a container, which knows what it was told.
        let beside = command().args(["probe", what, "--json"]).env("LEASEHOLD_LISTEN", listen).output().await;
        let beside = beside.unwrap();
        assert!(beside.status.success(), "{beside:?}");
        assert_eq!(beside.stdout, b"{\"status\":\"ok\"}\n");
    }
    replica.stop().await.assert(0);
    for what in ["alive", "ready"] {
        let ended = leasehold(["probe", what, "--endpoint", &endpoint]).await.assert(5);
        assert!(ended.err.contains("failed to reach"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_no_tenants_says_why() {
    for word in ["starting", "draining", "cut_off"] {
        let endpoint =
            answering(answer("503 Service Unavailable", "", &format!("{{\"status\":\"{word}\"}}")));
        let ended = leasehold(["probe", "ready", "--endpoint", &endpoint]).await.assert(5);
        assert_eq!(ended.out.trim(), word);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_answers_and_is_no_replica_is_told() {
    for answer in [answer("200 OK", "", "<html>"), answer("404 Not Found", "", "{\"status\":\"ok\"}")] {
        let endpoint = answering(answer);
        let ended = leasehold(["probe", "alive", "--endpoint", &endpoint]).await.assert(2);
        assert!(ended.err.contains("does not answer like a replica"), "{ended:?}");
    }
    let mut without = command();
    let ended = without.args(["probe", "alive"]).env("LEASEHOLD_LISTEN", "7400").output().await.unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
}
