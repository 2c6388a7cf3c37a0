//! What an inspection finds, as it stands: whether that is good is for others to say.

use std::time::Duration;

use super::options::TlsMode;

/// What the server and the session of our role are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of the server's")]
pub struct PostgresServer {
    /// Its version as it writes it, such as `15.14 (Debian 15.14-0+deb12u1)`.
    pub version: String,
    /// The same as a number, such as 150014.
    pub version_number: u32,
    /// The role that we are, quoted as statements need it.
    pub role: String,
    /// Whether the role may do everything.
    pub is_superuser: bool,
    /// The database.
    pub database: String,
    /// Whether the server follows another one.
    pub is_standby: bool,
    /// Whether transactions of this role only read where nothing else is said.
    pub is_read_only: bool,
    /// What `synchronous_commit` is for this role where nothing else is said.
    pub synchronous_commit: String,
    /// Whether commits wait for a standby, by `synchronous_standby_names`.
    pub has_synchronous_standby: bool,
    /// Whether what is committed is forced to the disk.
    pub fsync: bool,
    /// Connections that roles like ours may have, all together: `max_connections` without those that are reserved.
    pub connections_max: u32,
    /// Connections that our role may have, by its own or the database's limit.
    pub role_connections_max: Option<u32>,
    /// Connections that are open now, this one included.
    pub connections_open: u32,
}

/// How the way to the database, or to the pooler before it, is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresTls {
    /// What is asked for.
    pub mode: TlsMode,
    /// Whether TLS is spoken.
    pub is_used: bool,
    /// Whether the way never leaves the machine.
    pub is_local: bool,
}

/// The schema, its tables and what our role may do with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresSchema {
    /// Its name.
    pub name: String,
    /// Whether it exists.
    pub is_there: bool,
    /// The version of its tables; 0 where there are none. `None`: our role may not read it.
    pub version: Option<u32>,
    /// The version that this build needs.
    pub version_needed: u32,
    /// Whether our role may make what is missing.
    pub may_migrate: bool,
    /// The statements that give our role what it lacks; none where it lacks nothing.
    pub missing_grants: Vec<String>,
    /// What our role may do beyond what it needs, such as `DELETE on lease`.
    pub excess_rights: Vec<String>,
}

/// One question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresRoundTrip {
    /// How long it took.
    pub took: Duration,
    /// The server's calendar minus our own, in microseconds, if the server read its clock half-way. The error is half of
    /// [`took`](Self::took), and a millisecond more, since our own calendar is read in those.
    pub ahead_micros: i64,
}

/// What commits cost that wait for the log, as each renewal does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresCommits {
    /// How long each took.
    pub took: Vec<Duration>,
    /// What `synchronous_commit` was in them.
    pub synchronous_commit: String,
}

/// Whether a connection of ours keeps its session of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostgresPooling {
    /// It was seen in another session: a pooler gives each transaction, or each statement, one that is free.
    ByTransaction,
    /// It kept its session for as long as it was looked at: no pooler, or one that leaves it alone.
    NotSeen,
}
