//! Accepting connections, and serving each until it ends or the replica goes.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tower::ServiceExt as _;

use super::{
    counters::Cut,
    entrance::Entrance,
    handshake,
    held::Held,
    places::Places,
    pulse::Pulse,
    watched::{Waits, Watched},
};
use crate::app::App;

/// Bytes of a request's head, and of what one connection buffers in each direction.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Longer than any time that can be configured.
const OUT_OF_REACH: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long nothing is accepted once the system gave none, for want of file descriptors or memory: connections that end bring some.
const EXHAUSTED_WAIT: Duration = Duration::from_secs(1);

/// Serves `router` on `listener` until it is told to stop; then every connection ends once its request is answered. Dropping it ends
/// them at once.
pub(crate) async fn serve(
    listener: TcpListener,
    entrance: Entrance,
    router: Router,
    app: Arc<App>,
    mut stopped: watch::Receiver<bool>,
) {
    let limits = &app.config.limits;
    let places = Places::new(limits.connections_max, limits.connections_per_peer_max);
    let door = Arc::new(Door { router, entrance, app: Arc::clone(&app) });
    let mut connections = JoinSet::new();
    let ends = stopped.clone();
    let stop = async move {
        // An end that was dropped says the same.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    tokio::pin!(stop);
    loop {
        let accepted = async {
            let free = places.free().await;
            (free, listener.accept().await)
        };
        let (free, accepted) = tokio::select! {
            () = &mut stop => break,
            // What has ended is let go of.
            Some(_) = connections.join_next() => continue,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match places.take(free, peer.ip()) {
                Some(place) => {
                    let (door, ends) = (Arc::clone(&door), ends.clone());
                    connections.spawn(async move {
                        let held = (place, door.app.metrics.connections.open());
                        door.serve(stream, peer, ends).await;
                        drop(held);
                    });
                }
                None => app.metrics.connections.cut(Cut::Crowded),
            },
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "nothing could be accepted");
                app.timer.sleep(EXHAUSTED_WAIT).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// What every connection is served with.
struct Door {
    router: Router,
    entrance: Entrance,
    app: Arc<App>,
}

impl Door {
    /// Serves a connection to its end.
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, stopped: watch::Receiver<bool>) {
        // Small answers go out at once.
        let _ = stream.set_nodelay(true);
        // A peer that is gone and could not say so takes nothing either: the system gives up on it in the same time.
        let stall = self.app.config.limits.stall_time_max;
        let millis = u32::try_from(stall.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, millis);
        let Some(tls) = &self.app.tls else { return self.converse(stream, peer, stopped).await };
        let mut ends = stopped.clone();
        let agreed = tokio::select! {
            agreed = handshake::agree(tls.acceptor(), stream, peer, &self.app) => agreed,
            // Nothing was asked yet. An end that was dropped says the same.
            _ = ends.wait_for(|stopped| *stopped) => return,
        };
        if let Some(stream) = agreed {
            self.converse(stream, peer, stopped).await;
        }
    }

    /// Answers the requests that come over whatever carries their bytes.
    async fn converse<S>(&self, stream: S, peer: SocketAddr, mut stopped: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let app = &self.app;
        let limits = &app.config.limits;
        let waits = Waits {
            head: limits.head_time_max,
            next: limits.keep_alive_time_max,
            stall: limits.stall_time_max,
        };
        let pulse = Arc::new(Pulse::default());
        let counters = Arc::clone(&app.metrics.connections);
        let edges = (&app.clock, &app.timer);
        let stream = Watched::new(stream, waits, Arc::clone(&pulse), counters, edges);
        let of_requests = Arc::clone(&pulse);
        let service = service_fn(move |request: Request<Incoming>| {
            let beat = of_requests.begin();
            let (router, entrance) = (self.router.clone(), self.entrance);
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(ConnectInfo(peer));
                request.extensions_mut().insert(entrance);
                let answered = router.oneshot(request).await;
                answered.map(|response| response.map(|body| Held::new(body, beat)))
            }
        });
        let connection = http1::Builder::new()
            // Beyond any of ours: without one hyper does not look for the next request as soon as an answer is through, and nobody
            // would ask how long that one takes.
            .timer(TokioTimer::new())
            .header_read_timeout(OUT_OF_REACH)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let stop = async move {
            // An end that was dropped says the same.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop => {
                if !pulse.is_used() {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            // Whoever hangs up, sends what is no request or takes too long: no business of an operator's.
            tracing::trace!(%peer, %error, "a connection broke");
        }
    }
}

/// Whether an error of accepting is one connection's own, which ended before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::ConnectionRefused | K::ConnectionAborted | K::ConnectionReset)
}
