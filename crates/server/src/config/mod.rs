//! What an operator can set: one TOML file, each key also an environment variable, defaults for all of it.

mod auth;
mod azure;
mod check;
mod file;
mod issuers;
mod keys;
mod limits;
mod load;
mod pair;
mod peers;
mod placement;
mod postgres;
mod secret;
#[cfg(test)]
mod tests;
mod tls;

pub use auth::{AuthMode, AuthSettings};
pub use azure::{AzureIdentity, AzureSettings};
pub use file::{Config, FollowSettings, LogFormat, LogSettings, SnapshotSettings};
pub(crate) use issuers::IssuerKeys;
pub use issuers::IssuerSettings;
pub use keys::CONFIG_KEYS;
pub use limits::LimitSettings;
pub use pair::BackendPair;
pub use peers::PeerSettings;
pub use placement::PlacementSettings;
pub use postgres::PostgresSettings;
pub use secret::SecretText;
pub use tls::TlsSettings;
