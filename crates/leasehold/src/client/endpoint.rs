//! Where a replica answers.

use std::{fmt, net::IpAddr, str::FromStr};

use url::Url;

/// Where a replica answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint(Url);

/// A text that is no endpoint.
#[derive(Debug, thiserror::Error)]
#[error("an endpoint is a URL such as http://127.0.0.1:7400 or https://ledgers.example.com")]
pub(crate) struct EndpointError;

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let url: Url = text.parse().map_err(|_| EndpointError)?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        let is_bare = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if is_web && is_bare { Ok(Self(url)) } else { Err(EndpointError) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl Endpoint {
    /// The URL itself.
    pub(super) const fn url(&self) -> &Url {
        &self.0
    }

    /// Whether what is sent there can be read by nobody on the way: it is encrypted, or leaves this machine not at all.
    pub(super) fn keeps_secrets(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_here =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.0.scheme() == "https" || is_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_of_the_web_and_no_more() {
        for (text, shown) in [
            ("http://127.0.0.1:7400/", "http://127.0.0.1:7400"),
            ("https://ledgers.example.com", "https://ledgers.example.com"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), shown);
        }
        for text in ["", "127.0.0.1:7400", "ftp://h", "http://h?x", "unix:/x", "https://a:b@h"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_secret_is_kept_by_tls_or_on_this_machine() {
        for (text, keeps) in [
            ("https://ledgers.example.com", true),
            ("http://127.0.0.1:7400", true),
            ("http://127.8.0.1", true),
            ("http://[::1]:7400", true),
            ("http://localhost:7400", true),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("http://10.0.0.7:7400", false),
            ("http://ledger-0.ledger", false),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().keeps_secrets(), keeps, "{text}");
        }
    }
}
