//! Replicas as containers, by `integration/compose.yaml`.
//!
//! The file is used as it stands, under a project of the suite's own and with one more file that says what a suite sets: ports that are
//! free, the replicas' settings, and that nobody starts a container again but the suite.

use std::{
    collections::BTreeMap,
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use async_trait::async_trait;
use leasehold_testkit::within;
use rustix::process::Signal;
use serde_json::json;
use tokio::{process::Command, sync::Mutex};

use super::{
    fleet::REPLICAS,
    launcher::{Cut, End, Ended, Front, Launcher, Settings, Unsupported},
};

/// How compose is called here: `docker compose` or `docker-compose`, as `cargo xtask test --compose` has found.
const PROGRAM: &str = "LEASEHOLD_FLEET_COMPOSE";
/// The image of the build before this one, where there is one.
const PREVIOUS: &str = "LEASEHOLD_FLEET_PREVIOUS_IMAGE";
/// Longer than anything that compose is asked for.
const DONE_WITHIN: Duration = Duration::from_secs(180);

pub(crate) struct Compose {
    project: String,
    file: PathBuf,
    /// What this suite sets, beside the file.
    more: PathBuf,
    program: Vec<String>,
    front: u16,
    ports: BTreeMap<&'static str, u16>,
    settings: Mutex<BTreeMap<&'static str, Settings>>,
    /// Asking compose for one takes as long as some of what is measured.
    containers: Mutex<BTreeMap<&'static str, String>>,
}

impl Compose {
    /// The servers and the load balancer; no replica yet.
    pub(crate) async fn up(suite: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let program = env::var(PROGRAM).unwrap_or_else(|_| "docker compose".to_owned());
        let test = env::current_exe().unwrap();
        let directory = test.ancestors().nth(2).unwrap().join("fleet").join(format!("compose-{suite}"));
        fs::create_dir_all(&directory).unwrap();
        let listeners: Vec<_> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let mut free = listeners.iter().map(|listener| listener.local_addr().unwrap().port());
        let front = free.next().unwrap();
        let compose = Self {
            project: format!("leasehold-{suite}"),
            file: root.join("integration/compose.yaml"),
            more: directory.join("more.yaml"),
            program: program.split_whitespace().map(str::to_owned).collect(),
            front,
            ports: REPLICAS.into_iter().zip(free).collect(),
            settings: Mutex::default(),
            containers: Mutex::default(),
        };
        drop(listeners);
        compose.write(&BTreeMap::new());
        // What an earlier run has left that was killed.
        compose.run(&["down", "--volumes", "--timeout", "1"]).await;
        compose.run(&["up", "--detach", "--no-build", "secrets", "postgres", "azurite"]).await;
        compose.run(&["up", "--detach", "--no-build", "migrate"]).await;
        compose.run(&["up", "--detach", "--no-build", "--no-deps", "balancer"]).await;
        compose
    }

    fn write(&self, settings: &BTreeMap<&'static str, Settings>) {
        let replica = |name: &'static str| {
            let settings = settings.get(name).cloned().unwrap_or_default();
            // A container that a suite has ended stays so.
            let mut service = json!({ "environment": settings.variables, "restart": "no" });
            if let Some(image) = env::var(PREVIOUS).ok().filter(|_| settings.previous_build) {
                service["image"] = json!(image);
            }
            (format!("replica-{name}"), service)
        };
        let services: serde_json::Map<_, _> = REPLICAS.into_iter().map(replica).collect();
        // The version is docker-compose 1's, which wants the same in every file; JSON is YAML.
        fs::write(&self.more, json!({ "services": services }).to_string()).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program[0]);
        command
            .args(&self.program[1..])
            .args(["-p", &self.project, "-f"])
            .arg(&self.file)
            .arg("-f")
            .arg(&self.more);
        command.args(words).env("LEASEHOLD_PORT", self.front.to_string());
        for (name, port) in &self.ports {
            command.env(format!("LEASEHOLD_PORT_{}", name.to_uppercase()), port.to_string());
        }
        command
    }

    async fn run(&self, words: &[&str]) -> Output {
        done(self.command(words), &words.join(" ")).await
    }

    /// The one that was started last.
    async fn container(&self, replica: &str) -> String {
        self.containers.lock().await[replica].clone()
    }

    async fn docker(&self, words: &[&str]) -> String {
        let mut command = Command::new("docker");
        command.args(words);
        let output = done(command, &words.join(" ")).await;
        String::from_utf8_lossy(&output.stdout).trim().to_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Whether this machine lets us lose packets in the containers' networks.
    pub(crate) async fn can_be_cut(&self) -> Result<(), Unsupported> {
        let balancer = self.service("balancer").await;
        self.filter(&balancer, "--list", &[]).await
    }

    async fn service(&self, name: &str) -> String {
        let output = self.run(&["ps", "-q", name]).await;
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Has whatever arrives of the one end lost at the other: nobody who sends is told.
    async fn lose(&self, verb: &str, cut: Cut) -> Result<(), Unsupported> {
        let replica = self.container(cut.replica).await;
        let end = match cut.end {
            End::Postgres => self.service("postgres").await,
            End::Store => self.service("azurite").await,
            End::Replica(other) => self.container(other).await,
        };
        let (from, to) = if cut.outward { (replica, end) } else { (end, replica) };
        let addresses = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}";
        for address in self.docker(&["inspect", "--format", addresses, &from]).await.split_whitespace() {
            self.filter(&to, verb, &["--source", address, "--jump", "DROP"]).await?;
        }
        Ok(())
    }

    /// Calls `iptables` for what arrives in a container's network, which has nothing of the kind itself.
    async fn filter(&self, container: &str, verb: &str, words: &[&str]) -> Result<(), Unsupported> {
        let pid = self.docker(&["inspect", "--format", "{{.State.Pid}}", container]).await;
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &pid, "iptables", "--wait", verb, "INPUT"]).args(words);
        let unsupported = |why: String| Unsupported(format!("no packets are lost in containers here: {why}"));
        let output = command.output().await.map_err(|error| unsupported(format!("nsenter: {error}")))?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(unsupported(said())) }
    }
}

async fn done(mut command: Command, what: &str) -> Output {
    let output = within(DONE_WITHIN, what, command.output()).await.unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[async_trait]
impl Launcher for Compose {
    fn name(&self) -> &'static str {
        "compose"
    }

    async fn start(&self, replica: &'static str, settings: &Settings) {
        let mut all = self.settings.lock().await;
        all.insert(replica, settings.clone());
        self.write(&all);
        let service = format!("replica-{replica}");
        self.run(&["up", "--detach", "--no-build", "--no-deps", &service]).await;
        let container = self.service(&service).await;
        self.containers.lock().await.insert(replica, container);
    }

    async fn signal(&self, replica: &'static str, signal: Signal) {
        let container = self.container(replica).await;
        let name =
            [(Signal::TERM, "TERM"), (Signal::KILL, "KILL"), (Signal::STOP, "STOP"), (Signal::CONT, "CONT")]
                .into_iter()
                .find_map(|(one, name)| (one == signal).then_some(name));
        self.docker(&["kill", "--signal", name.unwrap(), &container]).await;
    }

    async fn ended(&self, replica: &'static str, limit: Duration) -> Ended {
        let container = self.container(replica).await;
        let code = within(limit, replica, self.docker(&["wait", &container])).await;
        let said = self.docker(&["logs", "--since", "10m", &container]).await;
        // By a signal the code is 128 and its number.
        let code = code.trim().parse().ok().filter(|code| *code < 128);
        Ended { code, said }
    }

    fn endpoint(&self, replica: &'static str) -> String {
        format!("http://127.0.0.1:{}", self.ports[replica])
    }

    fn front(&self) -> Front {
        Front::Balancer(format!("http://127.0.0.1:{}", self.front))
    }

    fn descriptors(&self, replica: &'static str) -> Result<usize, Unsupported> {
        let container = self.containers.try_lock().unwrap()[replica].clone();
        let mut command = std::process::Command::new("docker");
        let output = command.args(["inspect", "--format", "{{.State.Pid}}", &container]).output().unwrap();
        let pid = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let open = fs::read_dir(Path::new("/proc").join(pid).join("fd"));
        let unsupported =
            |error| Unsupported(format!("the containers' processes are not seen here: {error}"));
        open.map(Iterator::count).map_err(unsupported)
    }

    fn has_previous_build(&self) -> Result<(), Unsupported> {
        match env::var_os(PREVIOUS) {
            Some(_) => Ok(()),
            None => Err(Unsupported(format!("{PREVIOUS} names no image of the build before this one"))),
        }
    }

    async fn cut(&self, cut: Cut) -> Result<(), Unsupported> {
        self.lose("--insert", cut).await
    }

    async fn heal(&self, cut: Cut) {
        self.lose("--delete", cut).await.unwrap();
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        let mut command = self.command(&["down", "--volumes", "--timeout", "1"]);
        // What is left is taken away by the next run.
        drop(command.as_std_mut().output());
    }
}
