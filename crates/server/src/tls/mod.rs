//! TLS: what is asked by https, and the listener's own (decision 0042). It is rustls with ring, and nothing else.

mod certificate;
mod client;
mod counters;
mod from_files;
mod keep;
mod listener;
mod pem;
mod wall_time;
mod whoever;

pub use certificate::ServedCertificate;
pub use client::client_config;
pub(crate) use client::{peer_config, roots_of, system_roots};
pub(crate) use counters::TlsCounters;
pub(crate) use from_files::{FromFiles, Looked};
pub(crate) use keep::keep_tls;
pub(crate) use listener::ListenerTls;
pub use pem::TlsError;
pub use whoever::config_for_whoever_answers;
