//! What keeps a replica from starting: one line each, with a code, and an exit code that tells configuration from the rest.

use std::{fs, net::TcpListener};

use crate::process::{Ended, Replica, command_under, leasehold, leasehold_in};

#[track_caller]
fn assert_says(ended: &Ended, code: &str, parts: &[&str]) {
    assert_eq!(ended.out, "");
    let line = ended.err.lines().last().unwrap_or_default();
    assert!(line.starts_with(&format!("leasehold: error[{code}]: ")), "{ended:?}");
    for part in parts {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_is_not_writable_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    for path in [file.to_str().unwrap(), "/proc/leasehold"] {
        let ended =
            leasehold(["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", path]).await.assert(1);
        assert_says(&ended, "local_io", &[path, "--data-dir"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_is_named_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leasehold.toml");
    fs::write(&file, "[limits]\nrowz_max = 5\n").unwrap();
    let file = file.to_str().unwrap();
    let ended = leasehold(["serve", "--dev", "--config", file]).await.assert(2);
    assert_says(&ended, "invalid_configuration", &["`limits.rowz_max`", file]);
    let ended = leasehold_in(&[("LEASEHOLD_TTLL", "3s")], ["serve", "--dev"]).await.assert(2);
    assert_says(&ended, "invalid_configuration", &["`ttll`", "LEASEHOLD_TTLL"]);
    let ended =
        leasehold(["serve", "--dev", "--config", "/nowhere/leasehold.toml", "--json"]).await.assert(2);
    assert_eq!(ended.error_code(), "invalid_configuration");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_others_cannot_reach_it() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().to_str().unwrap();
    let ended =
        leasehold(["serve", "--dev", "--listen", "0.0.0.0:0", "--data-dir", data_dir]).await.assert(2);
    assert_says(&ended, "invalid_configuration", &["0.0.0.0:0", "loopback", "none-acknowledged"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_outside_development_needs_an_id() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().to_str().unwrap();
    let ended = leasehold(["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]).await.assert(2);
    assert_says(&ended, "invalid_configuration", &["`replica`"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_with_one_id_are_one_too_many() {
    let dir = tempfile::tempdir().unwrap();
    let environment = [("LEASEHOLD_REPLICA", "a")];
    let first = Replica::start_in(dir.path(), &environment).await;
    first.write("acme/u", "k-1").await;
    let data_dir = dir.path().to_str().unwrap();
    let second = ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", data_dir, "--replica", "a"];
    let ended = leasehold(second).await.assert(1);
    assert_says(&ended, "replica_id_taken", &["replica a", "an id of its own"]);
    let ended = leasehold(second.into_iter().chain(["--json"])).await.assert(1);
    assert_eq!(ended.error_code(), "replica_id_taken");
    assert_eq!(first.names("acme/u").await, ["k-1"], "the first one serves on");
    first.stop().await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "--dev", "--listen", &addr, "--data-dir", dir.path().to_str().unwrap()];
    let ended = leasehold(serve).await.assert(2);
    assert_says(&ended, "invalid_configuration", &[&addr, "in use", "--listen"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_derivation_key_would_orphan_every_tenant() {
    let dir = tempfile::tempdir().unwrap();
    Replica::start(dir.path()).await.stop().await.assert(0);
    fs::write(dir.path().join("derivation.key"), "00".repeat(32)).unwrap();
    let serve = ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", dir.path().to_str().unwrap()];
    let ended = leasehold(serve).await.assert(2);
    assert_says(&ended, "invalid_configuration", &["derivation.key", "orphaned"]);
}

/// The soft and the hard limit of open files of a process.
fn open_files_of(pid: u32) -> (String, String) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut words = line.split_whitespace().map(str::to_owned);
    (words.next().unwrap(), words.next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_takes_as_many_open_files_as_it_may_have_and_says_where_those_are_few() {
    let dir = tempfile::tempdir().unwrap();
    let serve = |limit: &str| {
        let mut command = command_under(limit);
        command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
        command
    };
    let replica = Replica::spawn_by(serve("ulimit -Sn 256")).await;
    let (soft, hard) = open_files_of(replica.pid());
    assert_eq!(soft, hard);
    assert_ne!(soft, "256");
    replica.stop().await.assert(0);

    let replica = Replica::spawn_by(serve("ulimit -Sn 200 && ulimit -Hn 300")).await;
    assert_eq!(open_files_of(replica.pid()), ("300".to_owned(), "300".to_owned()));
    let ended = replica.stop().await.assert(0);
    assert!(ended.err.contains("may have 300 files open") && ended.err.contains("LimitNOFILE"), "{ended:?}");

    let mut doctor = command_under("ulimit -Sn 200 && ulimit -Hn 300");
    doctor.args(["doctor", "--json", "--data-dir"]).arg(dir.path());
    let told = doctor.output().await.unwrap();
    let document: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["id"] == "process.open_files").unwrap();
    assert_eq!(found["verdict"], "warn", "{found}");
}
