//! What the machine says of a process.

use std::{fs, time::Duration};

use crate::BenchError;

/// What a process has taken so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Resident memory in bytes, as it is now.
    pub resident: u64,
    /// Time on a core, its own and the system's for it, children that ended not counted.
    pub cpu: Duration,
    /// Open file descriptors.
    pub descriptors: usize,
}

/// What `pid` has taken so far. Linux only: it is read from `/proc`.
pub fn usage_of(pid: u32) -> Result<Usage, BenchError> {
    let pages: u64 = field(&fs::read_to_string(format!("/proc/{pid}/statm"))?, 1)?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name stands in parentheses and may hold anything; what follows it is counted from the state on.
    let after_name = stat.rsplit_once(") ").ok_or("no name in stat")?.1;
    let ticks = field::<u64>(after_name, 11)? + field::<u64>(after_name, 12)?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Usage {
        resident: pages * rustix::param::page_size() as u64,
        cpu: Duration::from_millis(ticks * 1_000 / per_second),
        descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
    })
}

fn field<T: std::str::FromStr>(text: &str, at: usize) -> Result<T, BenchError> {
    text.split_ascii_whitespace()
        .nth(at)
        .and_then(|found| found.parse().ok())
        .ok_or_else(|| format!("no number in field {at}").into())
}
