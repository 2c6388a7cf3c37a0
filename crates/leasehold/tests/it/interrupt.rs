//! Verbs that are stopped, or wait too long.

use std::{net::TcpListener, path::Path};

use leasehold_testkit::{PATIENCE, eventually, within};
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{command, leasehold};

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_leaves_nothing_unfinished() {
    let dir = tempfile::tempdir().unwrap();
    // The system takes connections for it; nobody ever answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let to = dir.path().join("u.db");
    let mut child = command()
        .args(["tenant", "export", "acme/u", "--endpoint", &endpoint, "--to"])
        .arg(&to)
        .spawn()
        .unwrap();
    eventually(PATIENCE, "the export begins", async || entries(dir.path()) == 1).await;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let status = within(PATIENCE, "the export's end", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(entries(dir.path()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_waited_for_as_long_as_was_said() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let status = ["tenant", "status", "acme/u", "--endpoint", &endpoint, "--timeout", "200ms", "--json"];
    assert_eq!(leasehold(status).await.assert(5).error_code(), "timeout");
}
