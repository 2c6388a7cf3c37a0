//! An Azurite of the suites' own.

use std::{
    fmt, fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    sync::Arc,
};

use serde_json::Value;

use crate::{
    Server, ServiceError,
    packages::Packages,
    place::{self, Place},
    programs,
};

/// What its one storage account is called.
const ACCOUNT: &str = "leasehold";
/// Where it keeps what it knows of its objects, and of the files that their bytes are in.
const INDICES: [&str; 2] = ["__azurite_db_blob__.json", "__azurite_db_blob_extent__.json"];

/// Run before Azurite's own program: it looks for bytes that no object has any more every ten minutes, and answers nobody meanwhile, which took minutes
/// after suites that had put thousands. Here it does so once a day.
const COLLECT_SELDOM: &str = "data:text/javascript,import{createRequire}from'node:module';\
    createRequire(process.argv[1])('./utils/constants.js').DEFAULT_GC_INTERVAL_MS=86400000;";

/// Where it keeps its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nowhere: gone with it, and thousands of small files need not be.
    InMemory,
    /// In a directory that is there as long as the test's servers.
    OnDisk,
}

/// A blob service, empty when it is started first.
pub struct Azurite {
    server: Server,
    port: u16,
    key: String,
    /// Where there is one.
    directory: Option<PathBuf>,
}

impl fmt::Debug for Azurite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Azurite")
            .field("server", &self.server)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Azurite {
    /// Starts one. Strict, as Azurite is unless told not to be: what Azure refuses it refuses too.
    pub(crate) fn start(
        packages: &Packages,
        place: &Arc<Place>,
        persistence: Persistence,
    ) -> Result<Self, ServiceError> {
        let node = programs::find("node").ok_or(ServiceError::NoNode { program: "node" })?;
        let (port, key) = (place::free_port()?, place::secret()?);
        let mut command = place.own_command(&node, "azurite")?;
        // As whoever runs this: it need be nobody else, and nobody else may be able to read its program.
        command
            .args(["--import", COLLECT_SELDOM])
            .arg(packages.azurite())
            .args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()])
            .args(["--skipApiVersionCheck", "--disableTelemetry"])
            .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{key}"));
        let directory = if persistence == Persistence::OnDisk {
            let directory = place.directory("azurite")?;
            command.arg("--location").arg(&directory);
            Some(directory)
        } else {
            command.arg("--inMemoryPersistence");
            None
        };
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = Server::start("azurite", command, place, move |_| TcpStream::connect(addr).is_ok())?;
        Ok(Self { server, port, key, directory })
    }

    /// The process.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// The process, for whoever keeps it until its end.
    pub(crate) fn into_server(self) -> Server {
        self.server
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its connection string.
    #[must_use]
    pub fn connection_string(&self) -> String {
        self.connection_string_at(self.addr())
    }

    /// The connection string of what stands before it at `addr`.
    #[must_use]
    pub fn connection_string_at(&self, addr: SocketAddr) -> String {
        format!(
            "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={};BlobEndpoint=http://{addr}/{ACCOUNT};",
            self.key
        )
    }

    /// Whether a kill would leave the object `name`, whose creation was answered. Azurite writes what it knows of its objects every few
    /// seconds, and when it is asked to end; the storage service that it stands for has written it before it answers.
    #[must_use]
    pub fn has_saved(&self, name: &str) -> bool {
        let read = |index| fs::read_to_string(self.directory.as_ref()?.join(index)).ok();
        let [Some(objects), Some(files)] = INDICES.map(read) else { return false };
        let files_of = serde_json::from_str(&objects).ok().and_then(|objects| files_of(&objects, name));
        files_of.is_some_and(|needed| needed.iter().all(|file| files.contains(file)))
    }
}

/// The files that hold the bytes of the object `name`; `None` where the index has no such object, or one that is not whole.
fn files_of(index: &Value, name: &str) -> Option<Vec<String>> {
    let collections = index["collections"].as_array()?;
    let objects = collections.iter().filter_map(|collection| collection["data"].as_array()).flatten();
    let object =
        objects.into_iter().find(|object| object["name"] == name && object["isCommitted"] == true)?;
    let blocks = object["committedBlocksInOrder"].as_array().into_iter().flatten();
    let parts = blocks.chain([object]).filter_map(|part| part["persistency"]["id"].as_str());
    Some(parts.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_saved_with_all_of_its_files() {
        let index = json!({ "collections": [
            { "name": "containers", "data": [{ "name": "c" }] },
            { "name": "blobs", "data": [
                { "name": "whole", "isCommitted": true, "persistency": { "id": "f1" } },
                { "name": "parts", "isCommitted": true, "committedBlocksInOrder": [
                    { "persistency": { "id": "f2" } }, { "persistency": { "id": "f3" } } ] },
                { "name": "begun", "isCommitted": false },
            ] },
        ] });
        assert_eq!(files_of(&index, "whole").unwrap(), ["f1"]);
        assert_eq!(files_of(&index, "parts").unwrap(), ["f2", "f3"]);
        for name in ["begun", "c", "none"] {
            assert_eq!(files_of(&index, name), None, "{name}");
        }
    }
}
