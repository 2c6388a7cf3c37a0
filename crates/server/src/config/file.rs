//! The configuration as it stands in a file.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use leasehold_types::ReplicaId;
use serde::Deserialize;

use super::{
    AuthSettings, AzureSettings, LimitSettings, PeerSettings, PlacementSettings, PostgresSettings,
    TlsSettings,
};

/// The port that is tried first where nobody named one.
pub(crate) const PORT_DEFAULT: u16 = 7400;

/// Everything that can be set. One that came from [`Config::load`] or [`Config::dev`] has been checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where to listen. `None`: 127.0.0.1:7400, or, in development only, the next port that is free.
    pub listen: Option<SocketAddr>,
    /// Where other replicas and clients reach this one. `None`: `http://`, or `https://` with `[tls]`, and the address it
    /// listens on, of `peers.listen` where that is set.
    pub endpoint: Option<String>,
    /// The directory of what this machine keeps: the local ledgers of each replica, and, on the embedded pair, leases and store.
    pub data_dir: PathBuf,
    /// This replica's id. `None`: in development the first of `dev-1`, `dev-2`, … that no live process has.
    pub replica: Option<ReplicaId>,
    /// How long a lease runs after each renewal.
    #[serde(with = "humantime_serde")]
    pub ttl: Duration,
    /// How much earlier than the lease store a replica itself counts its lease as run out.
    #[serde(with = "humantime_serde")]
    pub margin: Duration,
    /// How often leases are renewed. `None`: every third of the ttl.
    #[serde(with = "humantime_serde")]
    pub renew_every: Option<Duration>,
    /// How long a handoff waits for work in flight.
    #[serde(with = "humantime_serde")]
    pub drain_timeout: Duration,
    /// How long a shutdown may take before what is left is abandoned and named.
    #[serde(with = "humantime_serde")]
    pub grace_period: Duration,
    /// After how long without a call a tenant is handed off. `None`: never.
    #[serde(with = "humantime_serde")]
    pub idle_after: Option<Duration>,
    /// The file with the key (64 hexadecimal digits) by which tenant ids are derived. `None`, on the embedded pair: `derivation.key`
    /// in the data directory, made at the first start.
    pub derivation_key_file: Option<PathBuf>,
    /// How the listener is known.
    pub tls: TlsSettings,
    /// Leases in Postgres: half of the cloud pair.
    pub postgres: Option<PostgresSettings>,
    /// Images in Azure Blob: the other half.
    pub azure: Option<AzureSettings>,
    /// Snapshots.
    pub snapshot: SnapshotSettings,
    /// Bounds.
    pub limits: LimitSettings,
    /// Event streams.
    pub follow: FollowSettings,
    /// How the replicas of a fleet know one another.
    pub peers: PeerSettings,
    /// Where the tenants of a fleet belong.
    pub placement: PlacementSettings,
    /// Who may call.
    pub auth: AuthSettings,
    /// Logs.
    pub log: LogSettings,
    /// Whether this is `serve --dev`: an id and a port are chosen where none was named.
    #[serde(skip)]
    pub dev: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: None,
            endpoint: None,
            data_dir: PathBuf::from(".leasehold"),
            replica: None,
            ttl: Duration::from_secs(10),
            margin: Duration::from_secs(2),
            renew_every: None,
            drain_timeout: Duration::from_secs(30),
            grace_period: Duration::from_secs(60),
            idle_after: None,
            derivation_key_file: None,
            tls: TlsSettings::default(),
            postgres: None,
            azure: None,
            snapshot: SnapshotSettings::default(),
            limits: LimitSettings::default(),
            follow: FollowSettings::default(),
            peers: PeerSettings::default(),
            placement: PlacementSettings::default(),
            auth: AuthSettings::default(),
            log: LogSettings::default(),
            dev: false,
        }
    }
}

impl Config {
    /// Where to listen, the default filled in.
    #[must_use]
    pub fn listen_addr(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, PORT_DEFAULT).into())
    }

    /// What belongs to one replica: its lock and its local ledgers.
    #[must_use]
    pub fn node_dir(&self, replica: &ReplicaId) -> PathBuf {
        self.nodes_dir().join(replica.as_str())
    }

    pub(crate) fn nodes_dir(&self) -> PathBuf {
        self.data_dir.join("nodes")
    }

    /// The derivation key's file, the default filled in.
    #[must_use]
    pub fn derivation_key_path(&self) -> PathBuf {
        self.derivation_key_file.clone().unwrap_or_else(|| self.data_dir.join("derivation.key"))
    }

    /// The embedded lease store's file.
    #[must_use]
    pub fn leases_path(&self) -> PathBuf {
        self.data_dir.join("leases.db")
    }

    /// The embedded blob store's directory.
    #[must_use]
    pub fn store_dir(&self) -> PathBuf {
        self.data_dir.join("store")
    }

    pub(crate) fn scratch_dir(node_dir: &Path) -> PathBuf {
        node_dir.join("scratch")
    }
}

/// Snapshots: what bounds the tail that a crash can take.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotSettings {
    /// How often a tenant that was written to is published. Zero: only on demand and at a handoff.
    #[serde(with = "humantime_serde")]
    pub every: Duration,
    /// Publish as soon as this many bytes are unpublished; 0: no such bound.
    pub unflushed_bytes_max: u64,
    /// How many uploads run side by side.
    pub uploads_max: usize,
    /// How long one upload may take.
    #[serde(with = "humantime_serde")]
    pub upload_timeout: Duration,
    /// How many tenants are handed off side by side when the replica goes.
    pub close_concurrency: usize,
}

impl Default for SnapshotSettings {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(10),
            unflushed_bytes_max: 16 * 1024 * 1024,
            uploads_max: 4,
            upload_timeout: Duration::from_secs(600),
            close_concurrency: 16,
        }
    }
}

/// Event streams.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FollowSettings {
    /// How often a stream without news sends a comment.
    #[serde(with = "humantime_serde")]
    pub heartbeat_every: Duration,
    /// Streams on this replica.
    pub followers_max: usize,
    /// Streams of one tenant.
    pub followers_per_tenant_max: usize,
}

impl Default for FollowSettings {
    fn default() -> Self {
        Self { heartbeat_every: Duration::from_secs(15), followers_max: 1_024, followers_per_tenant_max: 64 }
    }
}

/// Logs, on the standard error stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// How a line looks.
    pub format: LogFormat,
    /// What is logged, as `tracing` filters are written: `info`, `leasehold_tenure=debug,info`.
    pub filter: String,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { format: LogFormat::Text, filter: "info".to_owned() }
    }
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
