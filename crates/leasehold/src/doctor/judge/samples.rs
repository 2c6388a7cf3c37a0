//! Facts as they are where everything is well, for tests to spoil.

use std::time::Duration;

use leasehold_blob::{ContainerReach, ContainerSettings, KeptDeleted, Put};
use leasehold_lease::{
    PostgresCommits, PostgresPooling, PostgresRoundTrip, PostgresSchema, PostgresServer, PostgresTls,
    SqliteFile, TlsMode,
};
use leasehold_types::Timestamp;

use crate::doctor::{
    check::Check,
    fact::{Fact, Failure},
    facts::{
        Backends, CertificateFacts, Cloud, Container, DerivationKeyFacts, Embedded, Facts, FileSystem,
        KeyFile, ListenerCertificate, Postgres, Probed, Settings, Space, StateRoot, TlsFacts,
    },
    finding::{Finding, Verdict},
};

pub(super) const MILLI: Duration = Duration::from_millis(1);

pub(super) fn settings() -> Settings {
    Settings {
        ttl: Duration::from_secs(10),
        margin: Duration::from_secs(2),
        renew_every: Duration::from_millis(3_333),
        connections_of_a_replica: 10,
        import_bytes_max: 1 << 30,
        too_few_files: None,
    }
}

pub(super) fn cloud() -> Facts {
    Facts {
        serving: Fact::Known(()),
        settings: settings(),
        backends: Backends::Cloud(Box::new(Cloud { postgres: postgres(), container: container() })),
        state_root: state_root(),
        derivation_key: derivation_key(),
        tls: tls(),
    }
}

pub(super) fn embedded() -> Facts {
    let leases = SqliteFile {
        format: 1,
        format_known: 1,
        is_of_this_boot: true,
        derivation_fingerprint: Some("f00d".into()),
    };
    let embedded =
        Embedded { leases: Fact::Known(Some(leases)), boot: Fact::Known("b007".into()), store: probed() };
    Facts { backends: Backends::Embedded(Box::new(embedded)), ..cloud() }
}

pub(super) fn postgres() -> Postgres {
    Postgres {
        place: "db:5432/main".into(),
        reach: Fact::Known(()),
        server: Fact::Known(server()),
        tls: Fact::Known(PostgresTls { mode: TlsMode::VerifyFull, is_used: true, is_local: false }),
        schema: Fact::Known(schema()),
        pooling: Fact::Known(PostgresPooling::NotSeen),
        round_trips: Fact::Known(vec![PostgresRoundTrip { took: MILLI, ahead_micros: 100 }; 20]),
        commits: Fact::Known(PostgresCommits { took: vec![3 * MILLI; 5], synchronous_commit: "on".into() }),
    }
}

pub(super) fn server() -> PostgresServer {
    PostgresServer {
        version: "15.14".into(),
        version_number: 150_014,
        role: "leasehold_app".into(),
        is_superuser: false,
        database: "main".into(),
        is_standby: false,
        is_read_only: false,
        synchronous_commit: "on".into(),
        has_synchronous_standby: false,
        fsync: true,
        connections_max: 97,
        role_connections_max: None,
        connections_open: 5,
    }
}

pub(super) fn schema() -> PostgresSchema {
    PostgresSchema {
        name: "leasehold".into(),
        is_there: true,
        version: Some(1),
        version_needed: 1,
        may_migrate: false,
        missing_grants: Vec::new(),
        excess_rights: Vec::new(),
    }
}

pub(super) fn container() -> Container {
    Container {
        name: "images".into(),
        reach: Fact::Known(ContainerReach::Open),
        is_private_way: Fact::Known(true),
        settings: Fact::Known(Some(ContainerSettings { is_public: false, is_held: false })),
        probed: probed(),
        kept: Fact::Known(KeptDeleted::default()),
        round_trips: Fact::Known(vec![4 * MILLI; 10]),
    }
}

pub(super) fn probed() -> Probed {
    Probed {
        prefix: "_doctor/1/".into(),
        puts: Fact::Known((Put::Created, Put::Exists)),
        created_at_once: Fact::Known(1),
        reads_first: Fact::Known(true),
        lists: Fact::Known(true),
        deletes: Fact::Known(true),
        is_gone: Fact::Known(true),
        cleaned: Fact::Known(1),
    }
}

pub(super) fn state_root() -> StateRoot {
    StateRoot {
        path: "/var/lib/leasehold".into(),
        is_there: true,
        writes: Fact::Known(()),
        space: Fact::Known(Space { free_bytes: 50 << 30, free_files: Some(1_000_000) }),
        file_system: Fact::Known(FileSystem::Local(0xef53)),
        hard_links: Fact::Known(()),
        renames: Fact::Known(()),
        unlinks_open: Fact::Known(()),
        locks: Fact::Known(true),
        syncs: Fact::Known(vec![2 * MILLI; 8]),
    }
}

pub(super) fn certificate() -> CertificateFacts {
    let not_before = Timestamp::from_millis(1_767_225_600_000);
    CertificateFacts {
        not_before,
        not_after: not_before.plus(Duration::from_secs(90 * 86_400)),
        covers: true,
    }
}

pub(super) fn tls() -> TlsFacts {
    let listener = ListenerCertificate {
        cert_file: "/tls/tls.crt".into(),
        key_file: "/tls/tls.key".into(),
        host: Some("a.example".into()),
        pair: Fact::Known(certificate()),
    };
    TlsFacts {
        listener: Some(listener),
        authorities: Some(("/tls/ca.crt".into(), Fact::Known(()))),
        in_clear: None,
        now: certificate().not_before.plus(Duration::from_secs(86_400)),
    }
}

pub(super) fn derivation_key() -> DerivationKeyFacts {
    DerivationKeyFacts {
        path: "/etc/leasehold/derivation.key".into(),
        file: Fact::Known(KeyFile::Key { fingerprint: "f00d".into(), mode: 0o600 }),
        bound_to: Fact::Known(Some("f00d".into())),
    }
}

pub(super) fn failed<T>() -> Fact<T> {
    Fact::Failed(Failure { what: "it burns".into(), next: "run".into() })
}

/// The finding about a check.
#[track_caller]
pub(super) fn about(findings: &[Finding], check: Check) -> &Finding {
    findings.iter().find(|finding| finding.check == check).expect("every check is told")
}

/// Its verdict, and that it says `part` in what was found or in what to do.
#[track_caller]
pub(super) fn assert_says(finding: &Finding, verdict: Verdict, part: &str) {
    assert_eq!(finding.verdict, verdict, "{finding:?}");
    let said = format!("{} {}", finding.found, finding.next.as_deref().unwrap_or_default());
    assert!(said.contains(part), "{part} in {finding:?}");
}
