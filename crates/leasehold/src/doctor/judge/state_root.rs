//! The directory of everything that is local.

use std::time::Duration;

use super::measures::{Spread, bytes};
use crate::doctor::{
    check::Check,
    fact::Fact,
    facts::{FileSystem, Settings, Space, StateRoot},
    finding::Finding,
};

/// Below this not even one small tenant is opened.
const FREE_BYTES_MIN: u64 = 64 << 20;
/// Below this a replica with a few tenants runs out soon.
const FREE_BYTES_GOOD: u64 = 1 << 30;
/// A tenant has a handful of files.
const FREE_FILES_GOOD: u64 = 10_000;
/// From here on everything that waits for the disk is slow.
const SYNC_LONG: Duration = Duration::from_millis(100);

const LOCAL_DISK: &str = "give the replica a directory on a local disk (`data_dir`)";

pub(super) fn judge(facts: &StateRoot, settings: &Settings, is_cloud: bool) -> Vec<Finding> {
    let path = facts.path.display();
    let plain =
        |check: Check, fact: &Fact<()>, found: &str| fact.judged(check, |()| Finding::ok(check, found));
    vec![
        facts.writes.judged(Check::StateRootWritable, |()| {
            let check = Check::StateRootWritable;
            if facts.is_there {
                Finding::ok(check, format!("{path} can be written"))
            } else {
                Finding::ok(check, format!("{path} is not there yet, and can be made"))
            }
        }),
        facts.space.judged(Check::StateRootSpace, |space| room(*space, settings)),
        facts.file_system.judged(Check::StateRootFileSystem, |found| file_system(found, is_cloud)),
        plain(Check::StateRootHardLinks, &facts.hard_links, "hard links work, which salvage is made of"),
        plain(Check::StateRootRename, &facts.renames, "a rename replaces a file"),
        plain(Check::StateRootUnlinkOpen, &facts.unlinks_open, "a file that was removed is read to its end"),
        facts.locks.judged(Check::StateRootLocks, |is_refused| {
            let check = Check::StateRootLocks;
            if *is_refused {
                Finding::ok(check, "a second lock of a file is refused")
            } else {
                Finding::fail(
                    check,
                    "two locks of one file are granted: two processes could be one replica",
                    LOCAL_DISK,
                )
            }
        }),
        facts.syncs.judged(Check::StateRootSync, |syncs| {
            let check = Check::StateRootSync;
            match Spread::of(syncs.iter().copied()) {
                None => Finding::skipped(check, "none was made"),
                Some(spread) if spread.median < SYNC_LONG => Finding::ok(check, spread.shown()),
                Some(spread) => Finding::warn(check, spread.shown(), "give the replica a faster disk"),
            }
        }),
    ]
}

fn room(space: Space, settings: &Settings) -> Finding {
    let check = Check::StateRootSpace;
    let Space { free_bytes, free_files } = space;
    let found = match free_files {
        Some(files) => format!("{} and {files} files free", bytes(free_bytes)),
        None => format!("{} free", bytes(free_bytes)),
    };
    let good = FREE_BYTES_GOOD.max(settings.import_bytes_max);
    let next = format!(
        "make room for {} at least: open ledgers, uploads on their way and imports (`limits.import_bytes_max`)",
        bytes(good)
    );
    if free_bytes < FREE_BYTES_MIN || free_files == Some(0) {
        return Finding::fail(check, found, next);
    }
    if free_bytes < good || free_files.is_some_and(|files| files < FREE_FILES_GOOD) {
        return Finding::warn(check, found, next);
    }
    Finding::ok(check, found)
}

fn file_system(found: &FileSystem, is_cloud: bool) -> Finding {
    let check = Check::StateRootFileSystem;
    match found {
        FileSystem::Local(_) => Finding::ok(check, "a local file system"),
        FileSystem::Network(name) => {
            let found =
                format!("{name}, a network file system: SQLite's write-ahead log does not work there");
            Finding::fail(check, found, LOCAL_DISK)
        }
        FileSystem::Program(name) => {
            let found = format!("{name}: a program serves it, perhaps from another machine");
            Finding::warn(check, found, LOCAL_DISK)
        }
        FileSystem::Memory(name) if is_cloud => {
            let found = format!("{name}: ledgers take memory, and a reboot takes away what salvage holds");
            Finding::warn(check, found, LOCAL_DISK)
        }
        FileSystem::Memory(name) => {
            let found =
                format!("{name}: a reboot takes away every tenant, since leases and images lie there too");
            Finding::fail(check, found, LOCAL_DISK)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict,
        judge::samples::{MILLI, about, assert_says, failed, settings, state_root},
    };

    fn finding(check: Check, is_cloud: bool, spoil: impl FnOnce(&mut StateRoot)) -> Finding {
        let mut facts = state_root();
        spoil(&mut facts);
        about(&judge(&facts, &settings(), is_cloud), check).clone()
    }

    #[test]
    fn it_has_to_be_written() {
        let check = Check::StateRootWritable;
        assert_says(&finding(check, true, |_| {}), Verdict::Ok, "/var/lib/leasehold can be written");
        assert_says(&finding(check, true, |facts| facts.is_there = false), Verdict::Ok, "can be made");
        assert_says(&finding(check, true, |facts| facts.writes = failed()), Verdict::Fail, "it burns");
    }

    #[test]
    fn there_has_to_be_room() {
        let check = Check::StateRootSpace;
        for (free_bytes, free_files, verdict, part) in [
            (2 << 30, Some(20_000), Verdict::Ok, "2.00 GiB and 20000 files free"),
            (2 << 30, None, Verdict::Ok, "2.00 GiB free"),
            (512 << 20, None, Verdict::Warn, "make room for 1.00 GiB"),
            (2 << 30, Some(100), Verdict::Warn, "100 files"),
            (2 << 30, Some(0), Verdict::Fail, "0 files"),
            (63 << 20, None, Verdict::Fail, "make room"),
        ] {
            let space = Space { free_bytes, free_files };
            assert_says(&finding(check, true, |facts| facts.space = Fact::Known(space)), verdict, part);
        }
        let mut facts = state_root();
        facts.space = Fact::Known(Space { free_bytes: 2 << 30, free_files: None });
        let wide = Settings { import_bytes_max: 4 << 30, ..settings() };
        assert_says(about(&judge(&facts, &wide, true), check), Verdict::Warn, "4.00 GiB");
    }

    #[test]
    fn it_has_to_be_a_local_disk() {
        let check = Check::StateRootFileSystem;
        for (file_system, is_cloud, verdict, part) in [
            (FileSystem::Local(0xef53), false, Verdict::Ok, "local"),
            (FileSystem::Network("NFS"), true, Verdict::Fail, "NFS, a network"),
            (FileSystem::Program("FUSE"), true, Verdict::Warn, "FUSE"),
            (FileSystem::Memory("tmpfs"), true, Verdict::Warn, "tmpfs"),
            (FileSystem::Memory("tmpfs"), false, Verdict::Fail, "every tenant"),
        ] {
            let found = finding(check, is_cloud, |facts| facts.file_system = Fact::Known(file_system));
            assert_says(&found, verdict, part);
        }
    }

    #[test]
    fn it_has_to_do_what_a_disk_does() {
        for check in [Check::StateRootHardLinks, Check::StateRootRename, Check::StateRootUnlinkOpen] {
            assert_says(&finding(check, true, |_| {}), Verdict::Ok, "");
            let spoilt = finding(check, true, |facts| match check {
                Check::StateRootHardLinks => facts.hard_links = failed(),
                Check::StateRootRename => facts.renames = failed(),
                _ => facts.unlinks_open = failed(),
            });
            assert_says(&spoilt, Verdict::Fail, "it burns");
        }
        let check = Check::StateRootLocks;
        assert_says(
            &finding(check, true, |facts| facts.locks = Fact::Known(false)),
            Verdict::Fail,
            "two locks",
        );
        let check = Check::StateRootSync;
        assert_says(&finding(check, true, |_| {}), Verdict::Ok, "median 2.0 ms");
        let slow = finding(check, true, |facts| facts.syncs = Fact::Known(vec![150 * MILLI]));
        assert_says(&slow, Verdict::Warn, "faster disk");
    }
}
