//! The address.

use std::io;

use tokio::net::TcpListener;

use crate::{Config, StartError};

/// How many ports development mode tries where nobody named one.
const PORTS_MAX: u16 = 100;

/// Where a replica is reached.
#[derive(Debug)]
pub struct Listeners {
    /// By clients, and by replicas that have none of their own.
    pub clients: TcpListener,
    /// By replicas, where `peers.listen` gives them one.
    pub peers: Option<TcpListener>,
}

impl From<TcpListener> for Listeners {
    /// Replicas' own is listened on when the run begins, where the configuration gives them one.
    fn from(clients: TcpListener) -> Self {
        Self { clients, peers: None }
    }
}

/// Listens where the configuration says; for clients in development, where it does not say, on the first free port from 7400 on.
pub async fn bind(config: &Config) -> Result<Listeners, StartError> {
    let clients = bind_for_clients(config).await?;
    Ok(Listeners { clients, peers: bind_for_peers(config).await? })
}

/// Listens where replicas have an address of their own.
pub(super) async fn bind_for_peers(config: &Config) -> Result<Option<TcpListener>, StartError> {
    let Some(listen) = config.peers.listen else { return Ok(None) };
    let bound = TcpListener::bind(listen).await;
    bound.map(Some).map_err(|source| StartError::Listen { listen, source })
}

async fn bind_for_clients(config: &Config) -> Result<TcpListener, StartError> {
    let mut listen = config.listen_addr();
    let last = match config.listen {
        None if config.dev => listen.port().saturating_add(PORTS_MAX - 1),
        _ => listen.port(),
    };
    loop {
        match TcpListener::bind(listen).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && listen.port() < last => {
                listen.set_port(listen.port() + 1);
            }
            Err(source) => return Err(StartError::Listen { listen, source }),
        }
    }
}
