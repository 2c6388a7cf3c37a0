//! What answers is no replica, or what arrives is not what was sent.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use crate::process::leasehold;

/// Answers the first request with `answer`, whatever it is. Gives the endpoint.
pub(crate) fn answering(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut piece) = (Vec::new(), [0; 1024]);
        while !request.ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut piece).unwrap();
            request.extend_from_slice(&piece[..read]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
    });
    endpoint
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn something_else_that_answers_is_told() {
    for answer in [answer("200 OK", "", "<html>"), answer("502 Bad Gateway", "", "<html>")] {
        let endpoint = answering(answer);
        let ended = leasehold(["tenant", "status", "acme/u", "--endpoint", &endpoint]).await.assert(2);
        assert!(ended.err.contains("does not answer like a replica"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_arrives_changed_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("u.db");
    // The digest of nothing at all.
    let digest = "content-digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\r\n";
    for (headers, code, exit) in [(digest, "damaged", 4), ("", "invalid_argument", 2)] {
        let endpoint = answering(answer("200 OK", headers, "not nothing"));
        let export =
            ["tenant", "export", "acme/u", "--endpoint", &endpoint, "--json", "--to", to.to_str().unwrap()];
        assert_eq!(leasehold(export).await.assert(exit).error_code(), code);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    }
}
