//! How much memory callers' SQL may take, and their requests, all tenants together.

use std::{fs, path::Path};

/// The part of the machine's memory that `SQLite` may have.
const SQL_PART: u64 = 2;
/// The part that requests and their answers may have. What is left is for uploads, the program itself and the system's own cache.
const REQUEST_PART: u64 = 4;
/// What is counted on where the system does not say how much memory there is.
const UNKNOWN_MEMORY_BYTES: u64 = 2 << 30;
/// Less than this serves nobody.
const BYTES_MIN: u64 = 64 << 20;

/// The bound for [`leasehold_ledger::limit_memory`] in bytes: half of what this process may have, by the machine's memory or
/// by its control group's limit (version 2, or 1), whichever is lower.
///
/// It is no setting: what it keeps off is the end of the whole process, and a container's limit is where memory is set.
pub(super) fn sql_memory_max() -> u64 {
    (available() / SQL_PART).max(BYTES_MIN)
}

/// What requests may hold unless `limits.memory_bytes_max` says so, in bytes: a quarter of the same.
pub(super) fn request_memory_max() -> u64 {
    (available() / REQUEST_PART).max(BYTES_MIN)
}

/// What this process may have.
fn available() -> u64 {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let of_groups =
        limit_files(&groups).into_iter().filter_map(|path| read(Path::new(&path))?.trim().parse().ok());
    let of_machine = read(Path::new("/proc/meminfo")).and_then(|text| machine_bytes(&text));
    of_groups.chain(of_machine).min().unwrap_or(UNKNOWN_MEMORY_BYTES)
}

/// Where the limits of these control groups stand, those of the groups around them included. A group without a limit
/// says `max`, or a number above any memory.
fn limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        files.extend(Path::new(group).ancestors().map(|group| {
            let group = group.to_string_lossy();
            format!("{root}{}/{file}", group.trim_end_matches('/'))
        }));
    }
    files
}

/// `MemTotal` of `/proc/meminfo`.
fn machine_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_how_much_it_has() {
        let text = "MemTotal:       24684092 kB\nMemFree:         1000000 kB\n";
        assert_eq!(machine_bytes(text), Some(24_684_092 * 1024));
        assert_eq!(machine_bytes("MemFree: 1 kB\n"), None);
        assert_eq!(machine_bytes("MemTotal: much\n"), None);
    }

    #[test]
    fn a_group_is_bound_by_those_around_it() {
        assert_eq!(
            limit_files("0::/pods/one\n"),
            [
                "/sys/fs/cgroup/pods/one/memory.max",
                "/sys/fs/cgroup/pods/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            limit_files("5:cpu,cpuacct:/one\n4:memory:/\nnonsense\n"),
            ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
    }

    #[test]
    fn there_is_a_bound_and_room_below_it() {
        for bytes in [sql_memory_max(), request_memory_max()] {
            assert!((BYTES_MIN..1 << 50).contains(&bytes), "{bytes}");
        }
    }
}
