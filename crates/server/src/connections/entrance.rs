//! By which listener a request came in.

/// Whose a listener is; an extension of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// Clients' and replicas' alike.
    Shared,
    /// Clients' alone: replicas have one of their own.
    Clients,
    /// Replicas' alone.
    Replicas,
}
