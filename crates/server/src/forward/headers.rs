//! What stays between two hops, and how a forwarded request is marked.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::auth::CALLER;

/// The secret, by which the mark is believed.
pub(crate) const PEER_SECRET: HeaderName = HeaderName::from_static("leasehold-peer-secret");
/// The mark: the replica that forwards.
pub(crate) const FORWARDED_BY: HeaderName = HeaderName::from_static("leasehold-forwarded-by");
/// In an answer to another replica: the epoch at which the one that answers holds the tenant.
pub(crate) const OWNER_EPOCH: HeaderName = HeaderName::from_static("leasehold-owner-epoch");

/// Whether a request says that a replica forwards it; whether that is true is [`forward`](super::forward)'s to judge.
pub(crate) fn is_marked(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED_BY) || headers.contains_key(PEER_SECRET)
}

/// What is between two ends of one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Takes away what belongs to one connection, what `Connection` names included.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// A client's headers as the owner gets them: all that go from end to end, with the mark instead of what is for this replica.
pub(crate) fn outgoing(client: &HeaderMap, by: &HeaderValue, secret: HeaderValue) -> HeaderMap {
    let mut headers = client.clone();
    strip_hop_by_hop(&mut headers);
    // `Host` and `Origin` were judged here, about this replica's address; what was expected of us is done by us. Who calls was judged here
    // too: what it was judged by stays here.
    for name in [header::HOST, header::ORIGIN, header::EXPECT, header::AUTHORIZATION, CALLER] {
        headers.remove(name);
    }
    headers.insert(FORWARDED_BY, by.clone());
    headers.insert(PEER_SECRET, secret);
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_one_connection_stays_on_it() {
        let mut client = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("host", "a.example"),
            ("origin", "http://a.example"),
            ("authorization", "Bearer a.b.c"),
            ("leasehold-caller", "service crm admin"),
            ("x-request-id", "r-1"),
            ("traceparent", "00-1-2-01"),
            ("idempotency-key", "k"),
        ] {
            client.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let sent = outgoing(&client, &HeaderValue::from_static("a"), HeaderValue::from_static("s"));
        let mut names: Vec<&str> = sent.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "idempotency-key",
                "leasehold-forwarded-by",
                "leasehold-peer-secret",
                "traceparent",
                "x-request-id"
            ]
        );
    }
}
