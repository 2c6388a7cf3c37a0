//! A replica in a process of its own, with what is armed in it.

use std::{path::Path, process::Stdio};

use leasehold_proof::{Arm, ProofError, Times, World};
use leasehold_testkit::{eventually, within};
use leasehold_types::{LeaseKey, Point};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
    sync::{Mutex, watch},
};

use crate::stage::LONG;

/// What a replica logs, as `tracing` filters are written, where a life is looked at by itself.
const LOG: &str = "LEASEHOLD_PROOF_LOG";

/// The process; killed when it is dropped.
pub(crate) struct Process {
    child: Mutex<Child>,
    pid: Pid,
    input: Mutex<ChildStdin>,
    /// What it said, line by line, until somebody has waited for it.
    said: watch::Sender<Vec<String>>,
    /// Where it answers.
    pub(crate) endpoint: String,
}

impl Process {
    pub(crate) async fn start(
        (world, dir, times): (&World, &Path, Times),
        replica: &str,
        tenant: &LeaseKey,
        arms: &[Arm],
    ) -> Result<Self, ProofError> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-replica"));
        command
            .envs(world.environment())
            .args(["--world", world.name(), "--replica", replica, "--tenant", &tenant.to_string()])
            .args(["--ttl-ms", &times.ttl.as_millis().to_string()])
            .args(["--margin-ms", &times.margin.as_millis().to_string()])
            .arg("--dir")
            .arg(dir)
            .args(arms.iter().map(|arm| format!("--arm={arm}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Ok(filter) = std::env::var(LOG) {
            command.arg("--log").arg(filter).stderr(Stdio::inherit());
        }
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or("no process id")?;
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), errors) = taken else { return Err("no pipes".into()) };
        let said = watch::Sender::new(Vec::new());
        let tell = said.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                tell.send_modify(|said| said.push(line));
            }
            // Why it ended, where it says so.
            let mut why = String::new();
            if let Some(mut errors) = errors {
                let _ = errors.read_to_string(&mut why).await;
            }
            tell.send_modify(|said| said.push(format!("ended {why}")));
        });
        let (child, input) = (Mutex::new(child), Mutex::new(input));
        let mut process = Self { child, pid, input, said, endpoint: String::new() };
        let line = process.until_said("listening ").await?;
        line.trim_start_matches("listening ").clone_into(&mut process.endpoint);
        Ok(process)
    }

    /// Waits until it says a line that begins so.
    pub(crate) async fn until_said(&self, beginning: &str) -> Result<String, ProofError> {
        let place = |said: &[String]| said.iter().position(|line| line.starts_with(beginning));
        let ended = |said: &[String]| said.last().is_some_and(|line| line.starts_with("ended "));
        let mut listener = self.said.subscribe();
        let told = listener.wait_for(|said| place(said).is_some() || ended(said));
        // The sender lives in `self`.
        let _ = within(LONG, beginning, told).await;
        let mut found = None;
        self.said.send_modify(|said| found = place(said).map(|at| said.remove(at)));
        found.ok_or_else(|| format!("it never said `{beginning}`: {:?}", *self.said.borrow()).into())
    }

    /// Waits until it has come to `point`, where something was armed.
    pub(crate) async fn until_reached(&self, point: Point) -> Result<(), ProofError> {
        self.until_said(&format!("reached {point}")).await.map(drop)
    }

    /// Arms one more.
    pub(crate) async fn arm(&self, arm: Arm) -> Result<(), ProofError> {
        self.order(&format!("arm {arm}")).await?;
        self.until_said(&format!("armed {arm}")).await.map(drop)
    }

    /// Lets go of what is held.
    pub(crate) async fn go(&self) -> Result<(), ProofError> {
        self.order("go").await
    }

    async fn order(&self, order: &str) -> Result<(), ProofError> {
        let mut input = self.input.lock().await;
        input.write_all(format!("{order}\n").as_bytes()).await?;
        Ok(input.flush().await?)
    }

    /// Waits until it has stopped itself.
    pub(crate) async fn until_stopped(&self) {
        // Looked at, and left as it is: its end is for somebody else to collect.
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let stopped = || async { matches!(waitid(WaitId::Pid(self.pid), look), Ok(Some(_))) };
        eventually(LONG, "it is stopped", stopped).await;
    }

    /// Lets it go on after a stop.
    pub(crate) fn wake(&self) -> Result<(), ProofError> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Waits until it is gone; takes it away where it has not gone by itself.
    pub(crate) async fn ended(&self, by_itself: bool) -> Result<(), ProofError> {
        let mut child = self.child.lock().await;
        if !by_itself {
            child.start_kill()?;
        }
        let status = within(LONG, "the process's end", child.wait()).await?;
        if status.code().is_some() { Err(format!("it ended by itself: {status}").into()) } else { Ok(()) }
    }
}
