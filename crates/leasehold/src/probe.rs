//! `leasehold probe`: how a replica stands, by its exit code.

use std::{
    env,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use serde_json::json;

use crate::{
    cli::{ProbeArgs, Probed},
    client::{Client, Endpoint},
    error::CliError,
    exit::Exit,
    output::Output,
};

const LISTEN: &str = "LEASEHOLD_LISTEN";
/// What a replica is told that speaks TLS.
const CERT_FILE: &str = "LEASEHOLD_TLS__CERT_FILE";
/// Where a replica listens that was told nothing.
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7400);

/// Asks once, and shows what the replica says of itself.
pub(crate) async fn probe(args: ProbeArgs, output: Output) -> Result<Exit, CliError> {
    let client = match (args.endpoint, &args.ca_file) {
        (Some(endpoint), ca_file) => Client::new(endpoint, args.timeout, ca_file.as_deref())?,
        (None, ca_file) => {
            let endpoint = beside(env::var(LISTEN).ok().as_deref(), env::var_os(CERT_FILE).is_some())?;
            match ca_file {
                Some(ca_file) => Client::new(endpoint, args.timeout, Some(ca_file))?,
                None => Client::beside(endpoint, args.timeout)?,
            }
        }
    };
    let path = match args.what {
        Probed::Alive => "healthz",
        Probed::Ready => "readyz",
    };
    let (stands, status) = client.health(path).await?;
    output.show(&json!({ "status": status }), |out| writeln!(out, "{status}"))?;
    Ok(if stands { Exit::Done } else { Exit::TryAgain })
}

/// The replica of this machine that was told to listen at `listen`: by loopback where that is every address. One that speaks TLS has no
/// certificate for loopback: who answers there is believed, and is shown nothing.
fn beside(listen: Option<&str>, speaks_tls: bool) -> Result<Endpoint, CliError> {
    let mut address = match listen {
        Some(text) => text.parse().map_err(|_| CliError::NoAddress { text: text.to_owned() })?,
        None => LISTEN_DEFAULT,
    };
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let no_address = |_| CliError::NoAddress { text: address.to_string() };
    let scheme = if speaks_tls { "https" } else { "http" };
    format!("{scheme}://{address}").parse().map_err(no_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_everywhere_is_asked_by_loopback() {
        for (listen, endpoint) in [
            (None, "http://127.0.0.1:7400"),
            (Some("0.0.0.0:8080"), "http://127.0.0.1:8080"),
            (Some("[::]:7400"), "http://[::1]:7400"),
            (Some("10.0.0.7:7400"), "http://10.0.0.7:7400"),
        ] {
            assert_eq!(beside(listen, false).unwrap().to_string(), endpoint);
            assert_eq!(beside(listen, true).unwrap().to_string(), endpoint.replace("http:", "https:"));
        }
        assert!(matches!(beside(Some("7400"), false), Err(CliError::NoAddress { .. })));
    }
}
