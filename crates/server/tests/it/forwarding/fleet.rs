//! Replicas on one pair of backends with one peer secret, and owners that a test plays.

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::{Router, extract::Request, response::Response};
use leasehold_lease::{Acquisition, Announcement};
use leasehold_server::{Config, Edges, Stores};
use leasehold_testkit::{CloudPair, Pair as _};
use leasehold_types::{LeaseKey, ReplicaId};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    served::{Served, config_in},
    tls::authority::Authority,
};

pub(crate) const SECRET: &str = "the-secret-of-this-fleet";

/// What the replicas share.
pub(crate) struct Fleet {
    pub(crate) dir: TempDir,
    pub(crate) stores: Stores,
    edges: Edges,
    is_placed: bool,
    authority: Option<Authority>,
    is_apart: bool,
}

impl Fleet {
    /// On a SQLite file and a directory.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stores = Stores::embedded(&config_in(dir.path()), &Edges::system()).unwrap();
        Self::on(dir, stores)
    }

    /// On Postgres and Azure Blob.
    pub(crate) async fn cloud() -> Self {
        let pair = CloudPair::real_time().await;
        let stores = Stores { leases: pair.leases(), tokens: pair.tokens(), blobs: pair.blobs() };
        Self::on(tempfile::tempdir().unwrap(), stores)
    }

    fn on(dir: TempDir, stores: Stores) -> Self {
        let edges = Edges::system();
        let fleet = Self { dir, stores, edges, is_placed: false, authority: None, is_apart: false };
        fleet.secret_file("peers", SECRET);
        fleet
    }

    /// A file with these secrets.
    pub(crate) fn secret_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = config_in(self.dir.path());
        config.peers.secret_file = Some(self.dir.path().join("peers"));
        config.placement.enabled = self.is_placed;
        if self.is_apart {
            config.peers.listen = Some("127.0.0.1:0".parse().unwrap());
        }
        if let Some(authority) = &self.authority {
            authority.vouch_for(&self.edges.entropy.uuid().to_string(), &mut config);
        }
        config
    }

    /// The same fleet whose tenants open where they belong. The others' open where they are asked for, so that a test says where.
    pub(crate) fn placed(self) -> Self {
        Self { is_placed: true, ..self }
    }

    /// The same fleet whose replicas speak TLS and know one another by an authority of their own.
    pub(crate) fn over_tls(self) -> Self {
        let authority = Some(Authority::in_dir(&self.dir.path().join("pki")));
        Self { authority, ..self }
    }

    /// The same fleet whose replicas have ports of their own.
    pub(crate) fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// That authority.
    pub(crate) fn authority(&self) -> &Authority {
        self.authority.as_ref().unwrap()
    }

    pub(crate) async fn start(&self) -> Served {
        self.start_with(|_| {}).await
    }

    pub(crate) async fn start_with(&self, change: impl FnOnce(&mut Config)) -> Served {
        let mut config = self.config();
        change(&mut config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let trusts = self.authority.as_ref().map(Authority::ca_file).unwrap_or_default();
        Served::start_trusting(&trusts, listener, config, Edges::system(), self.stores.clone()).await
    }

    /// A replica whose peers reach it by what `place` makes of its address.
    pub(crate) async fn start_behind<T, F: Future<Output = (String, T)>>(
        &self,
        place: impl FnOnce(std::net::SocketAddr) -> F,
    ) -> (Served, T) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (endpoint, placed) = place(listener.local_addr().unwrap()).await;
        let mut config = self.config();
        config.endpoint = Some(endpoint);
        (Served::start_at(listener, config, self.stores.clone()).await, placed)
    }

    /// Announces a replica that is not there.
    pub(crate) async fn announce(&self, replica: &str, endpoint: &str) {
        let announcement = Announcement {
            replica: replica.parse().unwrap(),
            instance: self.edges.entropy.uuid(),
            endpoint: Some(endpoint.to_owned()),
            draining: false,
            open_tenants: 1,
        };
        self.stores.leases.announce(&announcement, Duration::from_secs(1), true).await.unwrap();
    }

    /// Gives `tenant` to a replica that is not there, for so long.
    pub(crate) async fn give(&self, tenant: &str, replica: &str, endpoint: &str, ttl: Duration) {
        self.announce(replica, endpoint).await;
        let (key, replica): (LeaseKey, ReplicaId) = (tenant.parse().unwrap(), replica.parse().unwrap());
        let tenure = self.edges.entropy.tenure_id();
        let acquired = self.stores.leases.acquire(&key, &replica, tenure, ttl).await.unwrap();
        assert!(matches!(acquired, Acquisition::Granted(_)), "{acquired:?}");
    }
}

/// An owner whose answers a test gives.
pub(crate) struct Played {
    pub(crate) endpoint: String,
    server: JoinHandle<()>,
}

impl Played {
    pub(crate) async fn start<F, Fut>(answer: F) -> Self
    where
        F: Fn(Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(answer);
        let router = Router::new().fallback(move |request: Request| answer(request));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { endpoint, server }
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// An address at which nobody listens, and nobody else will as long as the socket is there.
pub(crate) fn nobodys_address() -> (tokio::net::TcpSocket, std::net::SocketAddr) {
    let reserved = tokio::net::TcpSocket::new_v4().unwrap();
    reserved.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = reserved.local_addr().unwrap();
    (reserved, addr)
}
