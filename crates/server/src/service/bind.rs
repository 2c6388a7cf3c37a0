//! The address.

use std::io;

use tokio::net::TcpListener;

use crate::{Config, StartError};

/// How many ports development mode tries where nobody named one.
const PORTS_MAX: u16 = 100;

/// Listens where the configuration says; in development, where it does not say, on the first free port from 7400 on.
pub async fn bind(config: &Config) -> Result<TcpListener, StartError> {
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
