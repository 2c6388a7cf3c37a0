//! One server, from its start to its end.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{error::ServiceError, place::Place};

/// How often a server is asked whether it is ready, or gone.
const STEP: Duration = Duration::from_millis(50);
/// How often it is asked at the most: a minute for a start, ten seconds for an end.
const STEPS_TO_START: u32 = 1_200;
const STEPS_TO_STOP: u32 = 200;

/// Ends the server ($1) and removes the data ($2) if whoever holds the other end of the standard input goes without a word:
/// killed, interrupted, aborted.
const GUARD: &str =
    r#"read -r word || { kill -s INT "$1"; sleep 2; kill -s KILL "$1"; rm -rf -- "$2"; } 2>/dev/null"#;

/// A running server. It is stopped when this is dropped, and also when this program ends before it can.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    guard: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `command` as the server `name`.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        place: &Place,
    ) -> Result<Self, ServiceError> {
        let unstarted = |source| ServiceError::Start { program: name.to_owned(), source };
        // A group of its own: an interrupt at the terminal is for this program, which then ends its servers.
        let mut child = command.process_group(0).spawn().map_err(unstarted)?;
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard", &child.id().to_string()])
            .arg(place.data())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match guard {
            Ok(guard) => Ok(Self { name, child, guard, log: place.log(name) }),
            Err(source) => {
                // The start has failed already; that is what is told.
                drop(child.kill().and_then(|()| child.wait()));
                Err(unstarted(source))
            }
        }
    }

    /// Waits until `ready` says so.
    pub(crate) fn until(&mut self, ready: impl Fn() -> bool) -> Result<(), ServiceError> {
        for _ in 0..STEPS_TO_START {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(ServiceError::Ended { name: self.name, status, log: self.log.clone() });
            }
            if ready() {
                return Ok(());
            }
            pause();
        }
        let seconds = (STEP * STEPS_TO_START).as_secs();
        Err(ServiceError::Silent { name: self.name, seconds, log: self.log.clone() })
    }

    fn stop(&mut self) {
        let asked = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), Ok(None)) = (asked, self.child.try_wait()) {
            // An error: it went by itself.
            let _ = kill_process(pid, Signal::INT);
        }
        for _ in 0..STEPS_TO_STOP {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            pause();
        }
        drop(self.child.kill().and_then(|()| self.child.wait()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(mut stdin) = self.guard.stdin.take() {
            // An error: the guard is gone, and nothing is left to guard.
            drop(stdin.write_all(b"stopped\n"));
        }
        drop(self.guard.wait());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this program starts real servers and has no product code to inject a timer from"
)]
fn pause() {
    thread::sleep(STEP);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sleeper(place: &Place) -> Command {
        let mut command = place.command(Path::new("/bin/sh"), "sleeper").unwrap();
        command.args(["-c", "trap 'exit 0' INT; while :; do sleep 0.05; done"]);
        command
    }

    fn runs(pid: u32) -> bool {
        rustix::process::test_kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()).is_ok()
    }

    #[test]
    fn a_server_is_stopped_when_it_is_dropped() {
        let logs = tempfile::tempdir().unwrap();
        let place = Place::new(logs.path()).unwrap();
        let mut server = Server::start("sleeper", sleeper(&place), &place).unwrap();
        server.until(|| true).unwrap();
        let (server_pid, guard_pid) = (server.child.id(), server.guard.id());
        assert!(runs(server_pid) && runs(guard_pid));
        drop(server);
        assert!(!runs(server_pid) && !runs(guard_pid));
        assert!(place.data().exists());
    }

    #[test]
    fn a_server_does_not_outlive_whoever_started_it() {
        let logs = tempfile::tempdir().unwrap();
        let place = Place::new(logs.path()).unwrap();
        let mut server = Server::start("sleeper", sleeper(&place), &place).unwrap();
        // What the end of this program does, however it comes.
        drop(server.guard.stdin.take());
        let status = server.child.wait().unwrap();
        assert!(!runs(server.child.id()), "{status}");
        assert!(server.guard.wait().unwrap().success());
        assert!(!place.data().exists());
    }

    #[test]
    fn a_server_that_ends_at_once_is_told_with_its_log() {
        let logs = tempfile::tempdir().unwrap();
        let place = Place::new(logs.path()).unwrap();
        let mut command = place.command(Path::new("/bin/sh"), "short").unwrap();
        command.args(["-c", "echo no; exit 3"]);
        let mut server = Server::start("short", command, &place).unwrap();
        let told = server.until(|| false).unwrap_err().to_string();
        assert!(told.contains("short ended before it answered") && told.contains("short.log"), "{told}");
        assert_eq!(std::fs::read_to_string(place.log("short")).unwrap(), "no\n");
    }
}
