//! The connections to the other replicas: plain HTTP, or TLS where their endpoint is https (decision 0042).

use std::{
    error::Error,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, RwLock},
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, http::Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use leasehold_types::{Clock, Moment, Timer};
use rustls::RootCertStore;
use tokio::net::TcpStream;
use tower::Service;

use crate::{
    Config, ConfigError,
    tls::{FromFiles, Looked, TlsError, peer_config, roots_of, system_roots},
};

/// How many connections to one replica wait for their next request.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long one waits.
const IDLE_MAX: Duration = Duration::from_secs(30);
const CA_FILE: &str = "peers.ca_file";

type Http = Client<Connector, Body>;

/// How often it is said that other replicas' certificates are not accepted: every request that meets one would say so.
const UNTRUSTED_EVERY: Duration = Duration::from_secs(10);

/// Connections to other replicas, known by the authorities of `peers.ca_file`, or of this machine.
#[derive(Debug)]
pub(crate) struct Way {
    /// Written by [`Way::look`] alone. Connections that were made by other authorities go on until they are idle.
    http: RwLock<Http>,
    by_file: Option<FromFiles<RootCertStore>>,
    settings: Settings,
    /// When it was last said that a certificate is not accepted.
    said_at: Mutex<Option<Moment>>,
}

#[derive(Debug)]
struct Settings {
    connect_timeout: Duration,
    idle_max: Duration,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
}

impl Way {
    /// The way that `config` gives. It has to be made in a tokio runtime.
    pub(super) fn new(
        config: &Config,
        clock: &Arc<dyn Clock>,
        timer: &Arc<dyn Timer>,
    ) -> Result<Self, ConfigError> {
        let unusable = |error: TlsError| ConfigError::Unusable { key: CA_FILE, detail: error.to_string() };
        let settings = Settings {
            connect_timeout: config.peers.connect_timeout,
            // Shorter than the other replica waits, which is configured alike: a request never begins on what it closes.
            idle_max: IDLE_MAX.min(config.limits.keep_alive_time_max / 2),
            clock: Arc::clone(clock),
            timer: Arc::clone(timer),
        };
        let by_file = config.peers.ca_file.clone().map(|file| {
            let path = file.clone();
            FromFiles::read(vec![file], move |contents| roots_of(&path, &contents.concat()))
        });
        let by_file = by_file.transpose().map_err(unusable)?;
        let roots = by_file.as_ref().map_or_else(system_roots, |roots| roots.now().as_ref().clone());
        let http = RwLock::new(settings.http(roots).map_err(unusable)?);
        Ok(Self { http, by_file, settings, said_at: Mutex::default() })
    }

    /// The connections, by the authorities that are trusted now.
    pub(super) fn http(&self) -> Http {
        // What is written is made before.
        self.http.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes why a connection was not made, where that is for an operator to mend.
    pub(super) fn note(&self, endpoint: &str, error: &(dyn Error + 'static)) {
        let Some(refusal) = refusal_of(error) else { return };
        let now = self.settings.clock.now();
        let mut said_at = self.said_at.lock().unwrap_or_else(PoisonError::into_inner);
        if said_at.is_none_or(|said_at| now.since(said_at) >= UNTRUSTED_EVERY) {
            *said_at = Some(now);
            tracing::warn!(endpoint, error = %refusal, "another replica's certificate is not accepted: it is sent nothing (`peers.ca_file`, its `tls.cert_file`, its `endpoint`)");
        }
    }

    /// Whether the authorities are those of a file.
    pub(crate) const fn is_by_file(&self) -> bool {
        self.by_file.is_some()
    }

    /// Reads the authorities again, where they are those of a file.
    pub(crate) fn look(&self) -> Option<Looked> {
        let by_file = self.by_file.as_ref()?;
        let looked = by_file.look();
        if !matches!(looked, Looked::Taken) {
            return Some(looked);
        }
        match self.settings.http(by_file.now().as_ref().clone()) {
            Ok(http) => *self.http.write().unwrap_or_else(PoisonError::into_inner) = http,
            Err(error) => return Some(Looked::Refused { error, is_news: true }),
        }
        Some(looked)
    }
}

impl Settings {
    fn http(&self, roots: RootCertStore) -> Result<Http, TlsError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.connect_timeout));
        tcp.enforce_http(false);
        let https = HttpsConnector::from((tcp, peer_config(roots, &self.clock)?));
        let connector = Connector { https, within: self.connect_timeout, timer: Arc::clone(&self.timer) };
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.idle_max)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector);
        Ok(http)
    }
}

/// What is wrong with the certificate that was shown, if that is why there is no connection.
fn refusal_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refusal @ rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return Some(refusal);
        }
        // An error of the system that carries another one says only what that one's source is.
        let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match carried {
            Some(carried) => Some(carried),
            None => error.source(),
        };
    }
    None
}

/// Makes connections, each within a time: what is bounded below is TCP's part alone.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    https: HttpsConnector<HttpConnector>,
    within: Duration,
    timer: Arc<dyn Timer>,
}

type Connected = MaybeHttpsStream<TokioIo<TcpStream>>;
type ConnectError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = Connected;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, late) = (self.https.call(uri), self.timer.sleep(self.within));
        Box::pin(async move {
            tokio::select! {
                biased;
                connected = connecting => connected,
                () = late => Err(io::Error::new(io::ErrorKind::TimedOut, "the connection was not made in time").into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;

    use super::*;

    #[test]
    fn a_certificate_that_is_not_accepted_is_found_below_what_carries_it() {
        let refused = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let carried = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, refused));
        assert!(refusal_of(&carried).unwrap().to_string().contains("UnknownIssuer"));
        for other in [
            io::Error::other(rustls::Error::HandshakeNotComplete),
            io::Error::from(io::ErrorKind::ConnectionRefused),
        ] {
            assert!(refusal_of(&other).is_none(), "{other}");
        }
    }
}
