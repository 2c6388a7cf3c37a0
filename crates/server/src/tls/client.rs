//! What is asked by https.

use std::{path::Path, sync::Arc};

use leasehold_types::Clock;
use rustls::{ClientConfig, RootCertStore, client::Resumption, crypto::ring};

use super::{
    pem::{TlsError, certificates, read},
    wall_time::WallTime,
};

/// How another server is known: by the authorities of `ca_file`, and of this machine where none is named.
pub fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let roots = match ca_file {
        Some(path) => roots_of(path, &read(path)?)?,
        None => system_roots(),
    };
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// How another replica is known: by these authorities, at the time of this clock, whenever a connection is made. Nothing is resumed: a
/// resumed session would count for a certificate that has ended since.
pub(crate) fn peer_config(roots: RootCertStore, clock: &Arc<dyn Clock>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let time = Arc::new(WallTime(Arc::clone(clock)));
    let config = ClientConfig::builder_with_details(provider, time).with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The authorities in a file's bytes.
pub(crate) fn roots_of(path: &Path, bytes: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, bytes)? {
        roots.add(certificate).map_err(|error| TlsError::unusable(path, &error))?;
    }
    Ok(roots)
}

/// The authorities of this machine, as far as they can be read.
pub(crate) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
