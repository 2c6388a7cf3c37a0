//! What this process holds of the machine.

use std::{fs, io};

/// Open descriptors and resident memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Open file descriptors.
    pub descriptors: usize,
    /// Resident memory in KiB.
    pub resident_kib: u64,
}

impl Footprint {
    /// As it is now (Linux, `proc(5)`).
    pub fn now() -> io::Result<Self> {
        // The directory that is read is one of them while it is read.
        let descriptors = fs::read_dir("/proc/self/fd")?.count().saturating_sub(1);
        let status = fs::read_to_string("/proc/self/status")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident_kib = resident
            .and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok())
            .ok_or_else(|| io::Error::other("/proc/self/status names no VmRSS"))?;
        Ok(Self { descriptors, resident_kib })
    }
}
