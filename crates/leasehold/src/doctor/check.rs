//! The checks by name. A name is never changed and never used for something else: programs wait for it.

macro_rules! checks {
    ($($check:ident $id:literal,)*) => {
        /// Something that is looked at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Check {
            $(#[doc = concat!("`", $id, "`")] $check,)*
        }

        impl Check {
            /// All of them, in the order in which they are told.
            pub(super) const ALL: &[Self] = &[$(Self::$check,)*];

            /// Its name.
            pub(super) const fn id(self) -> &'static str {
                match self { $(Self::$check => $id,)* }
            }
        }
    };
}

checks! {
    Config "config.load",
    ConfigServing "config.serving",
    PostgresReach "postgres.reach",
    PostgresTls "postgres.tls",
    PostgresVersion "postgres.version",
    PostgresWritable "postgres.writable",
    PostgresSchema "postgres.schema",
    PostgresRights "postgres.rights",
    PostgresSynchronousCommit "postgres.synchronous_commit",
    PostgresFsync "postgres.fsync",
    PostgresPooler "postgres.pooler",
    PostgresConnections "postgres.connections",
    PostgresRoundTrip "postgres.round_trip",
    PostgresCommit "postgres.commit",
    PostgresClock "postgres.clock",
    ContainerReach "container.reach",
    ContainerTls "container.tls",
    ContainerPublicAccess "container.public_access",
    ContainerHold "container.hold",
    ContainerPutIfAbsent "container.put_if_absent",
    ContainerRead "container.read",
    ContainerList "container.list",
    ContainerDelete "container.delete",
    ContainerGone "container.gone",
    ContainerSoftDelete "container.soft_delete",
    ContainerRoundTrip "container.round_trip",
    ContainerCleanup "container.cleanup",
    LeasesFile "leases.file",
    LeasesClock "leases.clock",
    StorePutIfAbsent "store.put_if_absent",
    StoreRead "store.read",
    StoreList "store.list",
    StoreDelete "store.delete",
    StoreGone "store.gone",
    StoreCleanup "store.cleanup",
    StateRootWritable "state_root.writable",
    StateRootSpace "state_root.space",
    StateRootFileSystem "state_root.file_system",
    StateRootHardLinks "state_root.hard_links",
    StateRootRename "state_root.rename",
    StateRootUnlinkOpen "state_root.unlink_open",
    StateRootLocks "state_root.locks",
    StateRootSync "state_root.sync",
    ProcessOpenFiles "process.open_files",
    TlsFiles "tls.files",
    TlsValidity "tls.validity",
    TlsNames "tls.names",
    PeersAuthorities "peers.authorities",
    DerivationKeyFile "derivation_key.file",
    DerivationKeyMode "derivation_key.mode",
    DerivationKeyBound "derivation_key.bound",
    TimesMargin "times.margin",
    TimesRenewal "times.renewal",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_is_documented_and_nothing_else_is() {
        let document = include_str!("../../../../docs/doctor.md");
        let documented: BTreeSet<&str> = document
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
            .map(|(id, _)| id)
            .filter(|id| id.contains('.'))
            .collect();
        let made: BTreeSet<&str> = Check::ALL.iter().map(|check| check.id()).collect();
        assert_eq!(documented, made);
        assert_eq!(made.len(), Check::ALL.len(), "no name is used twice");
    }
}
