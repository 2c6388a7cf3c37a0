//! An Azurite of the suites' own.

use std::net::TcpStream;

use super::{
    error::ServiceError,
    packages::Packages,
    place::{self, Place},
    programs,
    server::Server,
};

/// What its one storage account is called.
const ACCOUNT: &str = "leasehold";

/// A running blob service, empty when it starts.
#[derive(Debug)]
pub(crate) struct Azurite {
    pub(super) server: Server,
    port: u16,
    key: String,
}

impl Azurite {
    /// Starts one. Strict, as Azurite is unless told not to be: what Azure refuses it refuses too.
    pub(crate) fn start(packages: &Packages, place: &Place) -> Result<Self, ServiceError> {
        let node = programs::find("node").ok_or(ServiceError::NoNode { program: "node" })?;
        let (port, key) = (place::free_port()?, place::secret()?);
        let mut command = place.own_command(&node, "azurite")?;
        // As whoever runs this: it need be nobody else, and nobody else may be able to read its program.
        command
            .arg(packages.azurite())
            .args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()])
            // In memory: what the suites put is gone with the run, and thousands of small files need not be.
            .args(["--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence"])
            .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{key}"));
        let mut server = Server::start("azurite", command, place)?;
        server.until(|| TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(Self { server, port, key })
    }

    /// Its connection string.
    pub(crate) fn connection_string(&self) -> String {
        format!(
            "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={};\
             BlobEndpoint=http://127.0.0.1:{}/{ACCOUNT};",
            self.key, self.port
        )
    }
}
