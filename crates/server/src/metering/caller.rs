//! Who sent a request, as far as it is metered.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::extract::{ConnectInfo, Request};

use crate::{
    auth::{Caller, CallerKind},
    connections::network_of,
};

/// One caller: whoever shares its bounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerId {
    /// One that is known by what it shows: all tokens of one name are one service's.
    Known(CallerKind, Arc<str>),
    /// The address that it came from: an IPv4 one, or all of an IPv6 /64.
    Address(IpAddr),
    /// Nobody knows: the service is called without a socket.
    Unknown,
}

impl CallerId {
    pub(crate) fn of(request: &Request) -> Self {
        let known = request.extensions().get::<Arc<Caller>>();
        if let Some(caller) = known.filter(|caller| caller.kind != CallerKind::Anonymous) {
            return Self::Known(caller.kind, Arc::clone(&caller.name));
        }
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        peer.map_or(Self::Unknown, |ConnectInfo(peer)| Self::Address(network_of(peer.ip())))
    }
}

/// As a refusal names it: to itself.
impl fmt::Display for CallerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(_) => f.write_str("this address"),
            Self::Known(..) | Self::Unknown => f.write_str("this caller"),
        }
    }
}
