//! What people at a terminal see.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Stdio,
};

use leasehold_testkit::{PATIENCE, within};
use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use crate::process::{Replica, command};

/// What a verb at a terminal answered, and what its terminal showed.
struct Seen {
    code: Option<i32>,
    out: String,
    shown: String,
}

/// Runs a verb whose standard input and standard error stream are a terminal, and types `typed` there.
async fn at_a_terminal(arguments: &[&str], typed: &str) -> Seen {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let name = ptsname(&near, Vec::new()).unwrap();
    let far = open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut near = File::from(near);
    near.write_all(typed.as_bytes()).unwrap();
    let mut command = command();
    command.args(arguments).stdin(Stdio::from(far.try_clone().unwrap())).stderr(Stdio::from(far));
    let child = command.spawn().unwrap();
    // The far side is the child's alone from here, so that its end is the terminal's.
    drop(command);
    let shown = tokio::task::spawn_blocking(move || {
        let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = near.read(&mut piece) {
            shown.extend_from_slice(&piece[..read]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    });
    let output = within(PATIENCE, "the verb", child.wait_with_output()).await.unwrap();
    Seen {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        shown: within(PATIENCE, "the terminal's end", shown).await.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_asks_for_the_tenants_key() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    replica.write("acme/u", "k-1").await;
    let forget = ["tenant", "--endpoint", &replica.endpoint, "forget", "acme/u"];
    let seen = at_a_terminal(&forget, "y\n").await;
    assert_eq!((seen.code, seen.out.as_str()), (Some(1), ""), "{}", seen.shown);
    assert!(seen.shown.contains("Type acme/u to confirm") && seen.shown.contains("not confirmed"));
    assert_eq!(replica.names("acme/u").await, ["k-1"]);

    let seen = at_a_terminal(&forget, "acme/u\n").await;
    assert_eq!(seen.code, Some(0), "{}", seen.shown);
    assert!(seen.out.contains("forgotten") && seen.out.contains("verified"), "{}", seen.out);
    replica.events("acme/u").await.assert(410);
    replica.stop().await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_work_shows_how_far_it_is_to_people_only() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    replica.write("acme/u", "k-1").await;
    replica.stop().await.assert(0);
    let verify = ["snapshot", "verify", "acme/u", "--data-dir", dir.path().to_str().unwrap()];
    let seen = at_a_terminal(&verify, "").await;
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "1.1  ok\n"));
    assert!(seen.shown.contains("verifying acme/u 1.1"), "{:?}", seen.shown);
    let seen = at_a_terminal(&[&verify[..], &["--json"]].concat(), "").await;
    assert_eq!((seen.code, seen.shown.as_str()), (Some(0), ""));
}
