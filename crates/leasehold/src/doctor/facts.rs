//! Everything that is known when it is judged.

use std::{path::PathBuf, time::Duration};

use leasehold_blob::{ContainerReach, ContainerSettings, KeptDeleted, Put};
use leasehold_lease::{
    PostgresCommits, PostgresPooling, PostgresRoundTrip, PostgresSchema, PostgresServer, PostgresTls,
    SqliteFile,
};
use leasehold_types::Timestamp;

use super::fact::Fact;

/// What the configuration says, as far as facts are held against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) ttl: Duration,
    pub(super) margin: Duration,
    /// How often leases are renewed, the default filled in.
    pub(super) renew_every: Duration,
    /// Connections that one replica opens at the most, those for renewals included.
    pub(super) connections_of_a_replica: u32,
    /// The largest ledger that a caller may bring, in bytes.
    pub(super) import_bytes_max: u64,
    /// What is wrong with how many files a process may have open here; `None`: they are enough.
    pub(super) too_few_files: Option<String>,
}

/// All facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether the configuration, which was loaded, is enough to serve by.
    pub(super) serving: Fact<()>,
    pub(super) settings: Settings,
    pub(super) backends: Backends,
    pub(super) state_root: StateRoot,
    pub(super) derivation_key: DerivationKeyFacts,
    pub(super) tls: TlsFacts,
}

/// Those of the pair of backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Backends {
    Embedded(Box<Embedded>),
    Cloud(Box<Cloud>),
}

impl Backends {
    pub(super) const fn is_cloud(&self) -> bool {
        matches!(self, Self::Cloud(_))
    }
}

/// A SQLite lease file and a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Embedded {
    /// `None`: there is none yet.
    pub(super) leases: Fact<Option<SqliteFile>>,
    /// The id of the machine's boot.
    pub(super) boot: Fact<String>,
    pub(super) store: Probed,
}

/// Postgres and a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cloud {
    pub(super) postgres: Postgres,
    pub(super) container: Container,
}

/// The database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Postgres {
    /// Where it is, for people.
    pub(super) place: String,
    pub(super) reach: Fact<()>,
    pub(super) server: Fact<PostgresServer>,
    pub(super) tls: Fact<PostgresTls>,
    pub(super) schema: Fact<PostgresSchema>,
    pub(super) pooling: Fact<PostgresPooling>,
    pub(super) round_trips: Fact<Vec<PostgresRoundTrip>>,
    pub(super) commits: Fact<PostgresCommits>,
}

/// The container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    /// Its name.
    pub(super) name: String,
    pub(super) reach: Fact<ContainerReach>,
    /// Whether nobody on the way reads what passes.
    pub(super) is_private_way: Fact<bool>,
    /// `None`: our credential may not ask.
    pub(super) settings: Fact<Option<ContainerSettings>>,
    pub(super) probed: Probed,
    /// What is kept of a probe that was deleted.
    pub(super) kept: Fact<KeptDeleted>,
    /// Reads of a small object.
    pub(super) round_trips: Fact<Vec<Duration>>,
}

/// What a blob store did with probes: small objects under a prefix that no tenant can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probed {
    /// Where they were.
    pub(super) prefix: String,
    /// The first put of a name, and the second one with another body.
    pub(super) puts: Fact<(Put, Put)>,
    /// How many of some puts of one name at the same time created it.
    pub(super) created_at_once: Fact<usize>,
    /// Whether a read gives what the first put wrote.
    pub(super) reads_first: Fact<bool>,
    /// Whether a listing shows it.
    pub(super) lists: Fact<bool>,
    /// Whether a delete said that there was something.
    pub(super) deletes: Fact<bool>,
    /// Whether neither a read nor a listing finds it after that.
    pub(super) is_gone: Fact<bool>,
    /// How many objects were left at the end and removed then.
    pub(super) cleaned: Fact<u64>,
}

impl Probed {
    /// Nothing was put.
    pub(super) fn unasked(prefix: &str, because: &str) -> Self {
        let because = because.to_owned();
        Self {
            prefix: prefix.into(),
            puts: Fact::Unasked(because.clone()),
            created_at_once: Fact::Unasked(because.clone()),
            reads_first: Fact::Unasked(because.clone()),
            lists: Fact::Unasked(because.clone()),
            deletes: Fact::Unasked(because.clone()),
            is_gone: Fact::Unasked(because.clone()),
            cleaned: Fact::Unasked(because),
        }
    }
}

/// The directory of everything that is local, or what is above it where it is not there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateRoot {
    /// As it is configured.
    pub(super) path: PathBuf,
    /// Whether it is there already.
    pub(super) is_there: bool,
    pub(super) writes: Fact<()>,
    pub(super) space: Fact<Space>,
    pub(super) file_system: Fact<FileSystem>,
    pub(super) hard_links: Fact<()>,
    pub(super) renames: Fact<()>,
    pub(super) unlinks_open: Fact<()>,
    /// Whether a second lock of a file is refused.
    pub(super) locks: Fact<bool>,
    /// How long small writes took to reach the disk.
    pub(super) syncs: Fact<Vec<Duration>>,
}

/// Room on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) free_bytes: u64,
    /// Files that can still be made; `None` where the file system does not count them.
    pub(super) free_files: Option<u64>,
}

/// What kind of file system it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    /// A disk of this machine, as far as can be told; its type as the kernel numbers it.
    Local(u64),
    /// Memory, which a reboot empties.
    Memory(&'static str),
    /// Somebody's program: it may be anything.
    Program(&'static str),
    /// Another machine's.
    Network(&'static str),
}

/// How the listener is known, and how it knows other replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsFacts {
    /// `None`: it speaks plain HTTP.
    pub(super) listener: Option<ListenerCertificate>,
    /// The file of the authorities by which other replicas are known, and whether it can be used; `None`: this machine's are.
    pub(super) authorities: Option<(PathBuf, Fact<()>)>,
    /// What is wrong with plain HTTP here; `None`: nothing.
    pub(super) in_clear: Option<String>,
    /// When it was looked.
    pub(super) now: Timestamp,
}

/// The certificate by which the listener is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListenerCertificate {
    pub(super) cert_file: PathBuf,
    pub(super) key_file: PathBuf,
    /// By which host others reach this replica; `None`: that is not said.
    pub(super) host: Option<String>,
    pub(super) pair: Fact<CertificateFacts>,
}

/// A certificate whose key is the one beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CertificateFacts {
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    /// Whether it is one for that host.
    pub(super) covers: bool,
}

/// The key by which tenant ids are derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DerivationKeyFacts {
    /// Where it is looked for.
    pub(super) path: PathBuf,
    pub(super) file: Fact<KeyFile>,
    /// The fingerprint that the lease store was bound to, if it was bound to one.
    pub(super) bound_to: Fact<Option<String>>,
}

/// The key's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyFile {
    /// There is none.
    Missing,
    /// It holds something else than 64 hexadecimal digits.
    Invalid,
    /// It holds a key.
    Key {
        /// What may be shown of it.
        fingerprint: String,
        /// Who may do what with the file, as in `0o600`.
        mode: u32,
    },
}
