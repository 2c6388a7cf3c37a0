//! One server, from its start to its end.

use std::{
    fmt,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::process::Signal;

use crate::{ServiceError, place::Place, processes};

/// How often a server is asked whether it is ready, or gone.
const STEP: Duration = Duration::from_millis(20);
/// How often it is asked at the most: a minute for a start, ten seconds for an end at a word, half a minute for one by force.
const STEPS_TO_START: u32 = 3_000;
const STEPS_TO_STOP: u32 = 500;
const STEPS_TO_DIE: u32 = 1_500;

/// Ends the server ($1) with what it started and removes the data ($2) if whoever holds the other end of the standard input goes without a
/// word: killed, interrupted, aborted. What was paused goes on first: it hears nothing else.
const GUARD: &str = r#"read -r word || {
    all="$1 $(cat "/proc/$1/task/$1/children")"
    kill -s CONT $all; kill -s INT "$1"; sleep 2; kill -s KILL $all; rm -rf -- "$2"
} 2>/dev/null"#;

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Asked to end (SIGINT): it finishes nothing that its clients wait for, and leaves its data in order. Postgres calls it fast.
    Fast,
    /// Told to end (SIGQUIT): it leaves its data as they are. Postgres calls it immediate.
    Immediate,
    /// Not told at all (SIGKILL), and nothing that it started either.
    Kill,
}

type Ready = Box<dyn Fn(u32) -> bool + Send + Sync>;

/// A server. It is stopped when this is dropped, and also when this program ends before it can.
pub struct Server {
    name: &'static str,
    /// The same for each start.
    command: Command,
    /// Whether the process of this id is ready.
    ready: Ready,
    /// `None` while it is stopped.
    running: Option<Running>,
    place: Arc<Place>,
}

struct Running {
    child: Child,
    guard: Child,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts `command` as the server `name` and waits until it is ready.
    pub(crate) fn start(
        name: &'static str,
        command: Command,
        place: &Arc<Place>,
        ready: impl Fn(u32) -> bool + Send + Sync + 'static,
    ) -> Result<Self, ServiceError> {
        let (ready, place): (Ready, _) = (Box::new(ready), Arc::clone(place));
        let mut server = Self { name, command, ready, running: None, place };
        server.start_again()?;
        Ok(server)
    }

    /// Starts it where it was stopped, on the same port and data, and waits until it is ready. One that runs goes on.
    pub fn start_again(&mut self) -> Result<(), ServiceError> {
        if self.running.is_none() {
            self.running = Some(self.spawn()?);
        }
        for _ in 0..STEPS_TO_START {
            if let Some(running) = &mut self.running
                && let Ok(Some(status)) = running.child.try_wait()
            {
                self.forget();
                return Err(ServiceError::Ended { name: self.name, status, log: self.log() });
            }
            if self.pid().is_some_and(|pid| (self.ready)(pid)) {
                return Ok(());
            }
            pause();
        }
        let seconds = (STEP * STEPS_TO_START).as_secs();
        Err(ServiceError::Silent { name: self.name, seconds, log: self.log() })
    }

    fn spawn(&mut self) -> Result<Running, ServiceError> {
        let name = self.name;
        let unstarted = |source| ServiceError::Start { program: name.to_owned(), source };
        // A group of its own: an interrupt at the terminal is for this program, which then ends its servers.
        let mut child = self.command.process_group(0).spawn().map_err(unstarted)?;
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard", &child.id().to_string()])
            .arg(self.place.data())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match guard {
            Ok(guard) => Ok(Running { child, guard }),
            Err(source) => {
                // The start has failed already; that is what is told.
                drop(child.kill().and_then(|()| child.wait()));
                Err(unstarted(source))
            }
        }
    }

    /// Ends it; when this returns, it is gone and its port is free. One that is stopped stays so.
    pub fn stop(&mut self, how: Stop) -> Result<(), ServiceError> {
        let Some(pid) = self.pid() else { return Ok(()) };
        let all = processes::with_children(pid);
        // What is paused hears nothing but a kill.
        processes::tell(&all, Signal::CONT);
        let (told, signal, steps) = match how {
            Stop::Fast => (&all[..1], Signal::INT, STEPS_TO_STOP),
            Stop::Immediate => (&all[..1], Signal::QUIT, STEPS_TO_STOP),
            Stop::Kill => (&all[..], Signal::KILL, STEPS_TO_DIE),
        };
        processes::tell(told, signal);
        if self.waited(steps).is_none() {
            let seconds = (STEP * steps).as_secs();
            return Err(ServiceError::Lingers { name: self.name, seconds, log: self.log() });
        }
        Ok(())
    }

    /// Lets it do nothing at all (SIGSTOP) until [`go_on`](Self::go_on): its connections stay, and nothing is answered.
    pub fn pause(&self) {
        self.tell(Signal::STOP);
    }

    /// Lets it go on where it was paused.
    pub fn go_on(&self) {
        self.tell(Signal::CONT);
    }

    fn tell(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            processes::tell(&processes::with_children(pid), signal);
        }
    }

    /// Its process; `None` while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }

    fn log(&self) -> PathBuf {
        self.place.log(self.name)
    }

    /// How it ended, if it does within so many steps.
    fn waited(&mut self, steps: u32) -> Option<ExitStatus> {
        for _ in 0..steps {
            if let Ok(Some(status)) = self.running.as_mut()?.child.try_wait() {
                self.forget();
                return Some(status);
            }
            pause();
        }
        None
    }

    /// Sends the guard of a process home that is gone.
    fn forget(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        if let Some(mut stdin) = running.guard.stdin.take() {
            // An error: the guard is gone, and nothing is left to guard.
            drop(stdin.write_all(b"stopped\n"));
        }
        drop(running.guard.wait());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.stop(Stop::Fast).is_err() {
            // Nobody is left to be told.
            drop(self.stop(Stop::Kill));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "real servers are waited for, and there is no product code here to inject a timer from"
)]
fn pause() {
    thread::sleep(STEP);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rustix::process::Pid;

    use super::*;

    /// Answers nothing, writes a line for each start, and has a child.
    fn sleeper(place: &Arc<Place>) -> Server {
        let mut command = place.command(Path::new("/bin/sh"), "sleeper").unwrap();
        // It waits for the one child that it has: a shell that starts another one cannot be stopped until that one runs.
        let script = "trap 'exit 0' INT; trap 'exit 7' QUIT; echo up; sleep 1000 & while :; do wait; done";
        command.args(["-c", script]);
        Server::start("sleeper", command, place, |pid| processes::with_children(pid).len() > 1).unwrap()
    }

    fn place() -> (Arc<Place>, tempfile::TempDir) {
        let logs = tempfile::tempdir().unwrap();
        (Arc::new(Place::new(logs.path()).unwrap()), logs)
    }

    fn runs(pid: Pid) -> bool {
        rustix::process::test_kill_process(pid).is_ok()
    }

    /// The letter by which the system says what a process does.
    fn state(pid: u32) -> String {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("State:\t")).unwrap()[..1].to_owned()
    }

    #[test]
    fn a_server_is_stopped_when_it_is_dropped() {
        let (place, _logs) = place();
        let server = sleeper(&place);
        let guard = server.running.as_ref().unwrap().guard.id();
        let [server_pid, guard_pid] =
            [server.pid().unwrap(), guard].map(|pid| Pid::from_raw(i32::try_from(pid).unwrap()).unwrap());
        assert!(runs(server_pid) && runs(guard_pid));
        drop(server);
        assert!(!runs(server_pid) && !runs(guard_pid));
        assert!(place.data().exists());
    }

    #[test]
    fn a_server_that_was_stopped_is_started_again() {
        let (place, _logs) = place();
        let mut server = sleeper(&place);
        for how in [Stop::Fast, Stop::Immediate, Stop::Kill] {
            let before = server.pid().unwrap();
            server.stop(how).unwrap();
            assert_eq!(server.pid(), None);
            server.stop(how).unwrap();
            server.start_again().unwrap();
            assert_ne!(server.pid().unwrap(), before);
        }
        let log = std::fs::read_to_string(place.log("sleeper")).unwrap();
        assert_eq!(log, "up\nup\nup\nup\n", "one log for all of its lives");
    }

    #[test]
    fn a_kill_takes_what_the_server_started_along() {
        let (place, _logs) = place();
        let mut server = sleeper(&place);
        let all = processes::with_children(server.pid().unwrap());
        assert!(all.len() >= 2);
        server.stop(Stop::Kill).unwrap();
        for _ in 0..STEPS_TO_DIE {
            if !all
                .iter()
                .any(|pid| runs(*pid) && state(u32::try_from(pid.as_raw_nonzero().get()).unwrap()) != "Z")
            {
                return;
            }
            pause();
        }
        panic!("{all:?} run on");
    }

    #[test]
    fn a_paused_server_stands_still_and_can_be_stopped() {
        let (place, _logs) = place();
        let mut server = sleeper(&place);
        let pid = server.pid().unwrap();
        server.pause();
        let mut looks = 0;
        while state(pid) != "T" && looks < STEPS_TO_DIE {
            looks += 1;
            pause();
        }
        assert_eq!(state(pid), "T");
        server.go_on();
        while state(pid) == "T" && looks < STEPS_TO_DIE {
            looks += 1;
            pause();
        }
        assert_ne!(state(pid), "T");
        server.pause();
        server.stop(Stop::Fast).unwrap();
    }

    #[test]
    fn a_server_does_not_outlive_whoever_started_it() {
        let (place, _logs) = place();
        let mut server = sleeper(&place);
        server.pause();
        let running = server.running.as_mut().unwrap();
        // What the end of this program does, however it comes.
        drop(running.guard.stdin.take());
        let status = running.child.wait().unwrap();
        assert!(running.guard.wait().unwrap().success(), "{status}");
        assert!(!place.data().exists());
    }

    #[test]
    fn a_server_that_ends_at_once_is_told_with_its_log() {
        let (place, _logs) = place();
        let mut command = place.command(Path::new("/bin/sh"), "short").unwrap();
        command.args(["-c", "echo no; exit 3"]);
        let told = Server::start("short", command, &place, |_| false).unwrap_err().to_string();
        assert!(told.contains("short ended before it answered") && told.contains("short.log"), "{told}");
        assert_eq!(std::fs::read_to_string(place.log("short")).unwrap(), "no\n");
    }
}
