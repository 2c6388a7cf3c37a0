//! Processes of the binary: replicas, and verbs that run to their end.

use std::{
    ffi::OsStr,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use leasehold_testkit::{PATIENCE, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, ChildStderr, Command},
    task::JoinHandle,
};

/// A process of the binary whose environment says nothing of Leasehold but what a test says.
pub(crate) fn command() -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_leasehold")))
}

/// The same, started by a shell that sets a limit first, such as `ulimit -n 256`.
pub(crate) fn command_under(limit: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_leasehold")]);
    clean(shell)
}

fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LEASEHOLD_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// How a process ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    fn new(status: ExitStatus, out: String, err: String) -> Self {
        Self { code: status.code(), out, err }
    }

    /// Its standard output as one document.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of the error in its document.
    pub(crate) fn error_code(&self) -> String {
        self.document()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub(crate) fn assert(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// Runs the binary to its end.
pub(crate) async fn leasehold<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    leasehold_in(&[], arguments).await
}

/// The same with these variables.
pub(crate) async fn leasehold_in<A: AsRef<OsStr>>(
    environment: &[(&str, &str)],
    arguments: impl IntoIterator<Item = A>,
) -> Ended {
    let mut command = command();
    let child = command.args(arguments).envs(environment.iter().copied()).spawn().unwrap();
    let output = within(PATIENCE, "the verb", child.wait_with_output()).await.unwrap();
    Ended::new(output.status, text(output.stdout), text(output.stderr))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// A running `serve`; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Replica {
    child: Child,
    /// All of its standard output, once that has ended.
    out: JoinHandle<String>,
    err: JoinHandle<String>,
    /// Where it answers.
    pub(crate) endpoint: String,
    /// Its banner.
    pub(crate) banner: String,
}

impl Replica {
    /// Starts a `serve --dev` on a port of its own, and waits for its banner.
    pub(crate) async fn start(data_dir: &Path) -> Self {
        Self::start_in(data_dir, &[]).await
    }

    /// The same with these variables.
    pub(crate) async fn start_in(data_dir: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start_with(data_dir, environment, &[]).await
    }

    /// The same with these arguments.
    pub(crate) async fn start_with(
        data_dir: &Path,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let serve = ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir"].map(OsStr::new);
        let arguments = arguments.iter().map(OsStr::new);
        Self::spawn(serve.into_iter().chain([data_dir.as_os_str()]).chain(arguments), environment).await
    }

    /// Starts the `serve` that these arguments make, and waits for what it says of itself.
    pub(crate) async fn spawn<A: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = A>,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = command();
        command.args(arguments).envs(environment.iter().copied());
        Self::spawn_by(command).await
    }

    /// The same by a command that has all of it.
    pub(crate) async fn spawn_by(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let err = tokio::spawn(all_of(child.stderr.take().unwrap()));
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        let said_all = async {
            while !banner.contains("Ctrl-C") && !banner.starts_with('{') {
                assert!(lines.read_line(&mut banner).await.unwrap() > 0, "it ended before its banner did");
            }
        };
        within(PATIENCE, "the banner", said_all).await;
        let document = serde_json::from_str::<Value>(&banner).unwrap_or_default();
        let address = banner.lines().find_map(|line| line.trim().strip_prefix("address"));
        let endpoint = document["address"].as_str().or(address).unwrap().trim().to_owned();
        let out = tokio::spawn(async move {
            let mut rest = String::new();
            lines.read_to_string(&mut rest).await.unwrap();
            rest
        });
        Self { child, out, err, endpoint, banner }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Asks it to go.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until it is gone.
    pub(crate) async fn ended(mut self, limit: Duration) -> Ended {
        let status = within(limit, "the replica's end", self.child.wait()).await.unwrap();
        Ended::new(status, self.out.await.unwrap(), self.err.await.unwrap())
    }

    /// Asks it to go, and waits until it is gone.
    pub(crate) async fn stop(self) -> Ended {
        self.terminate();
        self.ended(PATIENCE).await
    }

    /// Takes it away as a crash does.
    pub(crate) async fn kill(self) {
        self.signal(Signal::KILL);
        let ended = self.ended(PATIENCE).await;
        assert_eq!(ended.code, None, "{ended:?}");
    }

    /// A verb that asks this replica.
    pub(crate) async fn tenant<const N: usize>(&self, arguments: [&str; N]) -> Ended {
        leasehold(["tenant", "--endpoint", &self.endpoint].into_iter().chain(arguments)).await
    }
}

async fn all_of(mut stream: ChildStderr) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// A `serve` that has not come up; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Starting {
    child: Child,
    lines: BufReader<ChildStderr>,
    said: String,
}

impl Starting {
    pub(crate) fn new<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let mut child = command().args(arguments).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines, said: String::new() }
    }

    /// Reads its standard error stream until that holds `text`.
    pub(crate) async fn until_says(&mut self, text: &str) {
        let says = async {
            while !self.said.contains(text) {
                let len = self.lines.read_line(&mut self.said).await.unwrap();
                assert!(len > 0, "it ended before it said {text}: {}", self.said);
            }
        };
        within(PATIENCE, text, says).await;
    }

    pub(crate) fn terminate(&self) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    pub(crate) async fn ended(mut self, limit: Duration) -> Ended {
        let rest = async {
            self.lines.read_to_string(&mut self.said).await.unwrap();
            self.child.wait_with_output().await.unwrap()
        };
        let output = within(limit, "its end", rest).await;
        Ended::new(output.status, text(output.stdout), self.said)
    }
}
