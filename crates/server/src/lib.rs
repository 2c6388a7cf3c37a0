//! Leasehold over HTTP.
//!
//! [`Config`] is what an operator can set, [`Service`] is a replica put together from it, [`Service::run`] serves it between two edges
//! that are handed in: a listener and a channel that says when to go. The binary around it parses arguments and listens to
//! signals.
//!
//! Every route is described where it stands ([`openapi_json`] collects it), every refusal is problem details with a stable code from
//! one table, and everything that callers can make grow is bounded: bodies, batches, rows, statement time, requests
//! at work, waiting requests, streams, connections.

mod answer;
mod api;
mod app;
mod auth;
mod bounds;
mod config;
mod connections;
mod copying;
mod error;
mod extract;
mod forward;
#[cfg(test)]
mod fuzz;
mod memory;
mod metering;
mod metrics;
mod observe;
mod panics;
mod patience;
mod placement;
mod private_dir;
mod problem;
mod routes;
mod same_site;
mod scratch;
mod service;
mod stage;
mod starting;
mod status;
mod telemetry;
mod tls;

pub use api::openapi_json;
pub use config::{
    AuthMode, AuthSettings, AzureIdentity, AzureSettings, BackendPair, CONFIG_KEYS, Config, FollowSettings,
    IssuerSettings, LimitSettings, LogFormat, LogSettings, PeerSettings, PlacementSettings, PostgresSettings,
    SecretText, SnapshotSettings, TlsSettings,
};
pub use error::{ConfigError, ExitReport, ServeError, StartError};
pub use panics::watch_panics;
pub use service::{Edges, Listeners, Service, Shutdown, Stores, banner, bind};
pub use telemetry::init_telemetry;
pub use tls::{ServedCertificate, TlsError, client_config, config_for_whoever_answers};
