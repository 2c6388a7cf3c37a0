//! The load driver: connections that are kept, one request after the other on each, for a given time.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

use crate::{BenchError, Stopwatch};

/// What came of a load.
#[derive(Clone, Debug)]
pub struct Load {
    /// How long it was driven.
    pub took: Duration,
    /// How long each answer took, in no order.
    pub answers: Vec<Duration>,
}

impl Load {
    /// Answers in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 answers")]
        let answers = self.answers.len() as f64;
        answers / self.took.as_secs_f64()
    }
}

/// A connection that is kept, for one request after the other.
#[derive(Debug)]
pub struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    /// Connects.
    pub async fn open(addr: SocketAddr) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Asks for `path`, and answers the status and the body.
    pub async fn get(&mut self, path: &str) -> Result<(u16, Vec<u8>), BenchError> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Posts a JSON text to `path`.
    pub async fn post(&mut self, path: &str, body: &str) -> Result<(u16, Vec<u8>), BenchError> {
        self.send(Method::POST, path, Bytes::copy_from_slice(body.as_bytes())).await
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<(u16, Vec<u8>), BenchError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "127.0.0.1")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        // The connection is told of the end of the last answer a moment after we are.
        self.0.ready().await?;
        let answer = self.0.send_request(request).await?;
        let status = answer.status().as_u16();
        Ok((status, answer.into_body().collect().await?.to_bytes().to_vec()))
    }
}

/// Posts `body` to `path` at `addr` over and over, on `connections` connections, for `length`. Any answer that is no success ends it
/// with an error.
pub async fn drive(
    addr: SocketAddr,
    path: &str,
    body: &'static str,
    connections: usize,
    length: Duration,
) -> Result<Load, BenchError> {
    let mut at_work = JoinSet::new();
    let watch = Stopwatch::start();
    for _ in 0..connections {
        let path = path.to_owned();
        at_work.spawn(async move {
            let mut connection = Connection::open(addr).await?;
            let mut answers = Vec::new();
            while watch.read() < length {
                let asked = Stopwatch::start();
                let (status, text) =
                    connection.send(Method::POST, &path, Bytes::from_static(body.as_bytes())).await?;
                if !(200..300).contains(&status) {
                    return Err(BenchError::from(format!("{status}: {}", String::from_utf8_lossy(&text))));
                }
                answers.push(asked.read());
            }
            Ok(answers)
        });
    }
    let mut answers = Vec::new();
    while let Some(one) = at_work.join_next().await {
        answers.append(&mut one??);
    }
    Ok(Load { took: watch.read(), answers })
}
