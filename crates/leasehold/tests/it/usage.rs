//! What the command line itself answers.

use crate::process::leasehold;

#[tokio::test(flavor = "multi_thread")]
async fn help_says_what_there_is() {
    let help = leasehold(["--help"]).await.assert(0);
    for part in ["serve", "doctor", "tenant", "snapshot", "salvage", "Exit codes", "--json"] {
        assert!(help.out.contains(part), "{part}");
    }
    for verb in ["serve", "doctor", "tenant", "snapshot", "salvage"] {
        let help = leasehold([verb, "--help"]).await.assert(0);
        assert!(help.out.contains("Examples:") && help.out.contains(&format!("leasehold {verb}")), "{verb}");
    }
    let help = leasehold(["serve", "--help"]).await.assert(0);
    for (key, _) in leasehold_server::CONFIG_KEYS {
        assert!(help.out.contains(key), "{key}");
    }
    let version = leasehold(["--version"]).await.assert(0);
    assert_eq!(version.out, concat!("leasehold ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_line_that_is_none_is_refused() {
    let long = format!("acme/{}", "a".repeat(10 * 1024));
    for arguments in [
        &[][..],
        &["tenant"],
        &["tenant", "status", "acme"],
        &["tenant", "status", "acme/../u"],
        &["tenant", "status", &long],
        &["tenant", "status", "acme/u", "--endpoint", "ftp://x"],
        &["snapshot", "restore", "acme/u", "--at", "yesterday", "--to", "x"],
        &["snapshot", "restore", "acme/u"],
        &["serve", "--listen", "here"],
        &["serve", "--replica", "../a"],
    ] {
        let ended = leasehold(arguments).await.assert(2);
        assert!(ended.out.is_empty() && !ended.err.is_empty(), "{ended:?}");
        let ended = leasehold(arguments.iter().copied().chain(["--json"])).await.assert(2);
        assert_eq!(ended.error_code(), "invalid_argument", "{ended:?}");
        assert_eq!(ended.err, "", "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_not_there_is_told_apart_from_one_that_refuses() {
    // A port that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{free}");
    let ended = leasehold(["tenant", "status", "acme/u", "--endpoint", &endpoint]).await.assert(5);
    assert!(ended.err.contains(&endpoint) && ended.err.contains("is a replica running there?"), "{ended:?}");
    let ended = leasehold(["tenant", "status", "acme/u", "--endpoint", &endpoint, "--json"]).await.assert(5);
    assert_eq!(ended.error_code(), "timeout");
}
