//! Serving, from the first announcement to the last handoff.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use leasehold_types::LeaseKey;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Service,
    announcer::{announce_first, keep_announcing},
    bind::{Listeners, bind_for_peers},
    going::Going,
};
use crate::{
    ExitReport, ServeError, StartError,
    api::service_of,
    app::{App, AppState},
    auth::{keep_keys, keep_tokens},
    connections::{self, Entrance},
    forward::Ending,
    panics::lasting,
    placement::keep_balanced,
    routes::fleet::drain_all,
    stage::Stage,
    tls::keep_tls,
};

/// How a run is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Hand everything off within the grace period. A second message of either kind abandons.
    Graceful,
    /// Give every lease back at once.
    Abandon,
}

/// How long the connections have to end once every tenant is away, where the grace period leaves so much.
const CONNECTIONS_END_MAX: Duration = Duration::from_secs(5);
/// How long giving the leases back may take at the very end; after it they run out by themselves.
const ABANDON_MAX: Duration = Duration::from_secs(5);
/// How long a shutdown waits before it tries again what could not be handed off.
const RETRY_AFTER: Duration = Duration::from_millis(500);

impl Service {
    /// Serves on `listeners` until `shutdown` says otherwise (its other end closing says nothing), then hands off and ends.
    ///
    /// `Ok` means that everything that was acknowledged is in the store. The error of a replica that went names each tenant of
    /// which that is not so.
    pub async fn run(
        self,
        listeners: impl Into<Listeners>,
        mut shutdown: mpsc::Receiver<Shutdown>,
    ) -> Result<(), ServeError> {
        let Self { mut app, lock } = self;
        let Listeners { clients, peers } = listeners.into();
        let peers = match peers {
            None => bind_for_peers(&app.config).await?,
            // One that nobody configured would be a way around what is asked of clients.
            Some(peers) => app.config.peers.listen.map(|_| peers),
        };
        // What the others are told is where they are listened to.
        let (listen, told) = match (&peers, app.config.peers.listen) {
            (Some(peers), Some(listen)) => (listen, peers),
            _ => (app.config.listen_addr(), &clients),
        };
        let addr = told.local_addr().map_err(|source| StartError::Listen { listen, source })?;
        if app.config.endpoint.is_none() {
            app.endpoint = format!("{}://{addr}", app.config.tls.scheme());
        }
        let app = Arc::new(app);
        // From here on it answers: who asks too early is told so, or waits (starting.rs).
        let (stop, stopped) = watch::channel(false);
        let mut server = tokio::spawn(serve(clients, peers, Arc::clone(&app), stopped));
        tokio::select! {
            announced = announce_first(&app) => {
                announced.inspect_err(|_| server.abort())?;
            }
            _ = next(&mut shutdown) => {
                server.abort();
                retire(&app).await;
                return Ok(());
            }
        }
        let _keys = kept(&app, "reading the issuers' keys", keep_keys);
        let _tokens = kept(&app, "reading the tokens", keep_tokens);
        let _tls = kept(&app, "reading the certificates", keep_tls);
        app.router.spawn_housekeeping();
        app.stage.advance(Stage::Serving);
        tracing::info!(replica = %app.replica, endpoint = %app.endpoint, "serving");

        let (told, taken) = tokio::select! {
            told = next(&mut shutdown) => (told, None),
            taken = lasting(app.timer.as_ref(), "announcing", || keep_announcing(Arc::clone(&app))) => {
                tracing::error!(error = %taken, "another process took this replica's id");
                (Shutdown::Graceful, Some(taken))
            }
            never = lasting(app.timer.as_ref(), "balancing", || keep_balanced(Arc::clone(&app))) => match never {},
        };
        let began = app.clock.now();
        let going = Going::of(app.config.grace_period, CONNECTIONS_END_MAX, app.forwarding.is_some());
        let report = end(&app, told, going.hand_off, &mut shutdown).await;
        app.timer.sleep(going.linger).await;
        end_forwarding(&app, Ending::Streams);
        // Nobody is left to tell when the server is gone already.
        let _ = stop.send(true);
        let elapsed = app.clock.now().since(began);
        {
            let mut over = pin!(async { tokio::join!(&mut server, app.departures.told()) });
            tokio::select! {
                _ = &mut over => {}
                () = app.timer.sleep(going.connections(elapsed)) => {
                    // Who waits for another replica by this one is told so, instead of being cut off.
                    end_forwarding(&app, Ending::Answers);
                    tokio::select! {
                        _ = over => {}
                        () = app.timer.sleep(going.answers) => {}
                    }
                }
            }
        }
        server.abort();
        retire(&app).await;
        drop(lock);
        match (report, taken) {
            (Some(report), _) => Err(report.into()),
            (None, Some(taken)) => Err(taken.into()),
            (None, None) => Ok(()),
        }
    }
}

/// Serves by each listener, open to whose it is, until all of them are told to stop.
async fn serve(
    clients: TcpListener,
    peers: Option<TcpListener>,
    app: AppState,
    stopped: watch::Receiver<bool>,
) {
    let router = service_of(Arc::clone(&app));
    let by = |listener, entrance| {
        connections::serve(listener, entrance, router.clone(), Arc::clone(&app), stopped.clone())
    };
    match peers {
        None => by(clients, Entrance::Shared).await,
        Some(peers) => {
            tokio::join!(by(clients, Entrance::Clients), by(peers, Entrance::Replicas));
        }
    }
}

/// Has `keep` done beside everything else until the answer is dropped.
fn kept<F>(app: &AppState, what: &'static str, keep: fn(AppState) -> F) -> AbortOnDropHandle<Infallible>
where
    F: Future<Output = Infallible> + Send + 'static,
{
    let app = Arc::clone(app);
    AbortOnDropHandle::new(tokio::spawn(async move {
        lasting(app.timer.as_ref(), what, || keep(Arc::clone(&app))).await
    }))
}

fn end_forwarding(app: &App, ending: Ending) {
    if let Some(forwarding) = &app.forwarding {
        forwarding.end(ending);
    }
}

async fn retire(app: &App) {
    if let Err(error) = app.leases.retire(&app.replica, app.instance).await {
        tracing::warn!(%error, "the fleet could not be told that this replica is gone");
    }
}

/// Unready, take nothing new, hand off side by side in that time, abandon the rest. Answers what was not flushed.
async fn end(
    app: &AppState,
    told: Shutdown,
    hand_off_max: Duration,
    shutdown: &mut mpsc::Receiver<Shutdown>,
) -> Option<ExitReport> {
    app.stage.advance(Stage::Draining);
    tracing::info!(tenants = app.router.handles().len(), "going");
    let abandoned = match told {
        Shutdown::Abandon => true,
        Shutdown::Graceful => tokio::select! {
            () = lasting(app.timer.as_ref(), "handing off", || hand_off_all(app)) => return None,
            () = app.timer.sleep(hand_off_max) => false,
            _ = next(shutdown) => true,
        },
    };
    let mut not_flushed: Vec<LeaseKey> =
        app.router.handles().iter().map(|handle| handle.key().clone()).collect();
    not_flushed.sort_unstable();
    tokio::select! {
        () = app.router.abandon_all() => {}
        () = app.timer.sleep(ABANDON_MAX) => tracing::warn!("not every lease could be given back; they run out"),
    }
    if not_flushed.is_empty() {
        return None;
    }
    let report = ExitReport { not_flushed, abandoned };
    tracing::error!(%report, "gone");
    Some(report)
}

/// Hands off again and again what could not be: a store that is away for a moment should cost nobody a tail. Its share of the grace
/// period bounds it.
async fn hand_off_all(app: &AppState) {
    loop {
        let failed = drain_all(app).await;
        if failed.is_empty() {
            return;
        }
        tracing::warn!(?failed, "not handed off, trying again");
        app.timer.sleep(RETRY_AFTER).await;
    }
}

/// The next message; a channel that was closed has none.
async fn next(shutdown: &mut mpsc::Receiver<Shutdown>) -> Shutdown {
    match shutdown.recv().await {
        Some(told) => told,
        None => std::future::pending().await,
    }
}
