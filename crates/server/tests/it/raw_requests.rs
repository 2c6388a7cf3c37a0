//! What no client library would send: bytes on a connection that are nearly a request of HTTP.

use std::path::Path;

use leasehold_fuzz::{Corpus, Kept, Plan, near};
use proptest::strategy::{Strategy as _, ValueTree as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::served::{Served, soon};

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

fn corpus() -> Corpus {
    Corpus::of(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus")), "http")
}

/// The statuses that some bytes are answered by, one for each request that they are taken for. Nothing comes after the bytes, which who
/// `ends` tells the replica; who does not has asked for the end itself.
async fn statuses(served: &Served, bytes: &[u8], ends: bool) -> Vec<u16> {
    let mut stream = TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap();
    // Whoever has answered already takes no more of it.
    let _ = stream.write_all(bytes).await;
    if ends {
        let _ = stream.shutdown().await;
    }
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    while let Ok(len @ 1..) = soon("the end of the connection", stream.read(&mut piece)).await {
        answer.extend_from_slice(&piece[..len]);
        assert!(answer.len() <= ANSWER_BYTES_MAX, "an answer without end to {}", bytes.escape_ascii());
    }
    let text = String::from_utf8_lossy(&answer);
    let lines = text.split("HTTP/1.").skip(1).filter_map(|rest| rest.split(' ').nth(1)?.parse().ok());
    lines.filter(|status| (100..600).contains(status)).collect()
}

fn hold(bytes: &[u8], statuses: &[u16]) {
    for status in statuses {
        assert!(*status < 500 || matches!(status, 503 | 504), "{status} for {}", bytes.escape_ascii());
    }
}

#[tokio::test]
async fn a_connection_is_answered_or_cut_and_others_are_served_whatever_the_bytes() {
    if !Plan::is_wished("http") {
        return;
    }
    let served = Served::alone_with(|config| {
        config.limits.timeout_max = std::time::Duration::from_millis(500);
    })
    .await;
    let corpus = corpus();
    for (kept, path, bytes) in corpus.files() {
        let statuses = statuses(&served, &bytes, kept != Kept::Valid).await;
        hold(&bytes, &statuses);
        let is_let_in = statuses.iter().any(|status| (200..300).contains(status));
        match kept {
            Kept::Valid => assert!(is_let_in, "{}: {statuses:?}", path.display()),
            Kept::Refused => assert!(!is_let_in, "{}: {statuses:?}", path.display()),
            Kept::Found => {}
        }
    }
    let plan = Plan::of_environment();
    let (mut runner, inputs) = (plan.runner(), near(corpus.valid()));
    for _ in 0..plan.cases / 2 {
        let bytes = inputs.new_tree(&mut runner).unwrap().current();
        hold(&bytes, &statuses(&served, &bytes, true).await);
    }
    served.append("acme/user-1", "a").await;
    assert_eq!(served.metric("leasehold_panics_total").await, 0);
}
