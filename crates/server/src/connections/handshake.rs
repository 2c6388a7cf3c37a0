//! The beginning of a connection that speaks TLS.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::counters::Cut;
use crate::app::App;

/// What somebody is told who speaks plain HTTP here.
const TOLD: &str = "this address speaks TLS: ask it by https\n";
/// How much of a request in plain HTTP is read before its connection ends: what was left would take the answer with it.
const PLAIN_BYTES_MAX: u64 = 64 * 1024;

/// Agrees with the other side upon TLS, all of it within the time that the head of a request may take. `None`: the connection has ended.
pub(super) async fn agree(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    app: &App,
) -> Option<TlsStream<TcpStream>> {
    let agreed = tokio::select! {
        biased;
        agreed = attempt(acceptor, stream) => agreed,
        () = app.timer.sleep(app.config.limits.head_time_max) => {
            app.metrics.connections.cut(Cut::Handshake);
            return None;
        }
    };
    // Whoever knows none of our authorities, or means another port: nothing for the log of an operator who does not look for it.
    agreed.inspect_err(|error| tracing::debug!(%peer, %error, "no TLS was agreed upon")).ok()
}

async fn attempt(acceptor: TlsAcceptor, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    // A record of TLS begins with its kind, a request in plain HTTP with the letter of its method.
    let mut first = [0];
    let len = stream.peek(&mut first).await?;
    if len == 1 && first[0].is_ascii_alphabetic() {
        tell(&mut stream).await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "plain HTTP was spoken"));
    }
    acceptor.accept(stream).await
}

async fn tell(stream: &mut TcpStream) -> io::Result<()> {
    let len = TOLD.len();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{TOLD}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(PLAIN_BYTES_MAX), &mut tokio::io::sink()).await.map(|_| ())
}
