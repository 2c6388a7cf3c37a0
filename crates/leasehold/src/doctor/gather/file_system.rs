//! What a file system is, by the number that the kernel gives its kind (statfs(2)).

use crate::doctor::facts::FileSystem;

const NETWORK: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB 2"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "kAFS"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x786f_4256, "a shared folder of VirtualBox"),
    (0xbacb_acbc, "a shared folder of VMware"),
];
const PROGRAM: &[(u64, &str)] = &[(0x6573_5546, "FUSE")];
const MEMORY: &[(u64, &str)] = &[(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// The kind of this number. One that is not known is taken for a disk.
pub(super) fn of_type(number: u64) -> FileSystem {
    let named = |kinds: &[(u64, &'static str)]| {
        kinds.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
    };
    if let Some(name) = named(NETWORK) {
        FileSystem::Network(name)
    } else if let Some(name) = named(PROGRAM) {
        FileSystem::Program(name)
    } else if let Some(name) = named(MEMORY) {
        FileSystem::Memory(name)
    } else {
        FileSystem::Local(number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_is_known_by_its_number() {
        for (number, expected) in [
            (0x6969, FileSystem::Network("NFS")),
            (0x0102_1997, FileSystem::Network("9P")),
            (0x6573_5546, FileSystem::Program("FUSE")),
            (0x0102_1994, FileSystem::Memory("tmpfs")),
            (0xef53, FileSystem::Local(0xef53)),
            (0x794c_7630, FileSystem::Local(0x794c_7630)),
        ] {
            assert_eq!(of_type(number), expected);
        }
        let all: Vec<u64> = [NETWORK, PROGRAM, MEMORY].concat().iter().map(|(number, _)| *number).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no number stands twice");
    }
}
