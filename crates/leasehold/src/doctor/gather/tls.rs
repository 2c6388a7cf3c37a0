//! The facts of the listener's certificate, and of the authorities by which other replicas are known.

use leasehold_server::{Config, Edges, ServedCertificate, TlsError, client_config};

use super::asking::Asking;
use crate::doctor::{
    fact::Failure,
    facts::{CertificateFacts, ListenerCertificate, TlsFacts},
};

pub(super) async fn gather(asking: &Asking, config: &Config, edges: &Edges) -> TlsFacts {
    let listener = match config.tls.files() {
        Ok(Some((cert_file, key_file))) => {
            let (cert_file, key_file) = (cert_file.to_owned(), key_file.to_owned());
            let host = host_of(config);
            let (of, files) = (host.clone(), (cert_file.clone(), key_file.clone()));
            let read = move || {
                let pair = ServedCertificate::read(&files.0, &files.1)?;
                let covers = of.is_none_or(|host| pair.covers(&host));
                Ok(CertificateFacts { not_before: pair.not_before(), not_after: pair.not_after(), covers })
            };
            let pair = asking.blocking("read the certificate", read).await;
            Some(ListenerCertificate { cert_file, key_file, host, pair })
        }
        // A configuration that was loaded has both or none.
        Ok(None) | Err(_) => None,
    };
    let authorities = match config.peers.ca_file.clone() {
        Some(file) => {
            let path = file.clone();
            let read = move || client_config(Some(&file)).map(|_| ()).map_err(Failure::from);
            Some((path, asking.blocking("read the authorities", read).await))
        }
        None => None,
    };
    let in_clear = config.warning_of_tokens_in_clear();
    TlsFacts { listener, authorities, in_clear, now: edges.clock.wall() }
}

/// The host by which others reach this replica; `None`: it is not known here, such as one that is each pod's own.
fn host_of(config: &Config) -> Option<String> {
    if let Some(endpoint) = &config.endpoint {
        let rest = endpoint.split_once("://")?.1;
        let authority = rest.split('/').next()?;
        let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
        };
        return Some(host.to_owned());
    }
    let listen = config.peers.listen.unwrap_or_else(|| config.listen_addr()).ip();
    (!listen.is_unspecified()).then(|| listen.to_string())
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        let next = match &error {
            TlsError::Unreadable { .. } => "put the file there, for the user that the replica has to read",
            TlsError::Nothing { .. } => "give it as PEM: what begins with -----BEGIN",
            TlsError::Unusable { .. } | TlsError::Setup(_) => {
                "give the certificate first, then what leads from it to its authority, and the key that it was made for"
            }
        };
        Self { what: error.to_string(), next: next.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_reached_by_its_endpoints_host_or_where_it_listens() {
        let config = |endpoint: Option<&str>, listen: &str| Config {
            endpoint: endpoint.map(str::to_owned),
            listen: Some(listen.parse().unwrap()),
            ..Config::default()
        };
        for (endpoint, listen, host) in [
            (Some("https://a.example:7400"), "0.0.0.0:7400", Some("a.example")),
            (Some("https://a.example"), "0.0.0.0:7400", Some("a.example")),
            (Some("https://a.example/base"), "0.0.0.0:7400", Some("a.example")),
            (Some("https://[2001:db8::1]:7400"), "[::]:7400", Some("2001:db8::1")),
            (None, "10.0.0.7:7400", Some("10.0.0.7")),
            (None, "0.0.0.0:7400", None),
            (None, "[::]:7400", None),
        ] {
            assert_eq!(host_of(&config(endpoint, listen)).as_deref(), host, "{endpoint:?} {listen}");
        }
    }
}
