//! A process and those that it started, told together.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// `pid` and the processes that it started. Postgres gives each of its own a session, so that no group has them all.
pub(crate) fn with_children(pid: u32) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let own = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let theirs = children.split_whitespace().filter_map(|child| child.parse().ok().and_then(Pid::from_raw));
    own.into_iter().chain(theirs).collect()
}

/// Tells each of them. One that is gone is not missed.
pub(crate) fn tell(processes: &[Pid], signal: Signal) {
    for process in processes {
        let _ = kill_process(*process, signal);
    }
}
