//! What is known of who sent a request.

use std::sync::Arc;

use super::Caller;
use crate::problem::Problem;

/// Why nobody is known.
#[derive(Clone, Debug)]
pub(crate) enum Unknown {
    /// It shows nothing.
    Missing,
    /// What it shows is no valid credential: why, as its sender may know it.
    NotValid(&'static str),
    /// It says that a replica forwarded it, and does not show the fleet's secret.
    Peer(Problem),
}

/// Who sent a request, as an extension of it.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(super) who: Result<Arc<Caller>, Unknown>,
    /// Whether another replica sent it, whose word is taken for who its caller is.
    pub(super) is_of_peer: bool,
    /// Whether it came below `/v1/self`.
    pub(super) came_by_self: bool,
}

impl Identity {
    /// Its caller, where there is one.
    pub(crate) fn caller(&self) -> Option<Arc<Caller>> {
        self.who.as_ref().ok().cloned()
    }

    /// Whether another replica sent it.
    pub(crate) const fn is_of_peer(&self) -> bool {
        self.is_of_peer
    }
}
