//! Replicas as plain processes, with a Postgres and an Azurite of the suite's own.

use std::{
    collections::BTreeMap,
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use async_trait::async_trait;
use leasehold_services::{Azurite, OwnServers, Postgres};
use leasehold_testkit::within;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    sync::Mutex,
};

use super::{
    launcher::{Cut, Ended, Front, Launcher, Settings, Unsupported},
    namespaces::{self, Namespaces, PORT},
};

/// The build before this one, where somebody has it.
const PREVIOUS: &str = "LEASEHOLD_FLEET_PREVIOUS";
const CONTAINER: &str = "ledgers";

/// Where replicas are.
enum Network {
    /// Each on a port of its own, which it keeps.
    Loopback(BTreeMap<&'static str, u16>),
    /// Each in a network of its own, behind a router.
    Namespaces(Namespaces),
}

pub(crate) struct Processes {
    network: Network,
    /// Replicas go before their servers do. With each, where in its log this life of it begins.
    running: Mutex<BTreeMap<&'static str, (Child, usize)>>,
    postgres: Postgres,
    azurite: Azurite,
    /// A machine's disk for each, which outlives its process; and what the fleet shares.
    disks: TempDir,
    logs: PathBuf,
    programs: PathBuf,
}

impl Processes {
    /// Replicas on loopback.
    pub(crate) fn on_loopback(suite: &str, replicas: &[&'static str]) -> Self {
        // All at once, so that no port is given twice.
        let listeners: Vec<_> = replicas.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports = listeners.iter().map(|listener| listener.local_addr().unwrap().port());
        let ports = replicas.iter().copied().zip(ports).collect();
        Self::new(suite, |_, _| Ok(Network::Loopback(ports))).unwrap()
    }

    /// Replicas in network namespaces, between which packets can be lost.
    pub(crate) fn in_namespaces(suite: &str, replicas: &[&'static str]) -> Result<Self, Unsupported> {
        Namespaces::can_be_made()?;
        Self::new(suite, |postgres, azurite| {
            Ok(Network::Namespaces(Namespaces::new(replicas, postgres.addr(), azurite.addr())))
        })
    }

    fn new(
        suite: &str,
        network: impl FnOnce(&Postgres, &Azurite) -> Result<Network, Unsupported>,
    ) -> Result<Self, Unsupported> {
        let servers = OwnServers::of(&format!("fleet-{suite}")).unwrap();
        let (postgres, azurite) = (servers.postgres().unwrap(), servers.azurite().unwrap());
        let network = network(&postgres, &azurite)?;
        let disks = tempfile::tempdir().unwrap();
        fs::write(disks.path().join("derivation.key"), format!("{}\n", "5e".repeat(32))).unwrap();
        fs::write(disks.path().join("peer-secret"), "the-secret-of-this-fleet\n").unwrap();
        // Tests lie in `deps`, beside which the binary is.
        let test = env::current_exe().unwrap();
        let programs = test.ancestors().nth(2).unwrap().to_owned();
        let logs = programs.join("fleet").join(suite);
        // Those of the run before are nobody's any more.
        drop(fs::remove_dir_all(&logs));
        fs::create_dir_all(&logs).unwrap();
        Ok(Self { network, running: Mutex::default(), postgres, azurite, disks, logs, programs })
    }

    fn binary(&self, settings: &Settings) -> PathBuf {
        let previous = env::var_os(PREVIOUS).filter(|_| settings.previous_build);
        let binary = previous.map_or_else(|| self.programs.join("leasehold"), PathBuf::from);
        assert!(binary.is_file(), "{} is missing: `cargo xtask test --fleet` builds it", binary.display());
        binary
    }

    fn log(&self, replica: &str) -> PathBuf {
        self.logs.join(format!("{replica}.log"))
    }

    fn command(&self, replica: &'static str, settings: &Settings) -> Command {
        let binary = self.binary(settings);
        let mut command = match &self.network {
            Network::Loopback(_) => Command::new(binary),
            Network::Namespaces(namespaces) => namespaces.command(replica, &binary),
        };
        command.args(["serve", "--json"]);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("LEASEHOLD_") {
                command.env_remove(name);
            }
        }
        let path = |name: &str| self.disks.path().join(name);
        let (postgres, azurite, listen, endpoint, mode) = match &self.network {
            Network::Loopback(ports) => {
                let listen = format!("127.0.0.1:{}", ports[replica]);
                let endpoint = format!("http://{listen}");
                (self.postgres.addr(), self.azurite.addr(), listen, endpoint, "none")
            }
            Network::Namespaces(namespaces) => {
                let endpoint = format!("http://{}", namespaces.addr(replica));
                (
                    namespaces::POSTGRES,
                    namespaces::STORE,
                    format!("0.0.0.0:{PORT}"),
                    endpoint,
                    "none-acknowledged",
                )
            }
        };
        command
            .env("LEASEHOLD_REPLICA", replica)
            .env("LEASEHOLD_LISTEN", listen)
            .env("LEASEHOLD_ENDPOINT", endpoint)
            .env("LEASEHOLD_AUTH__MODE", mode)
            .env("LEASEHOLD_DATA_DIR", path(replica))
            .env("LEASEHOLD_DERIVATION_KEY_FILE", path("derivation.key"))
            .env("LEASEHOLD_PEERS__SECRET_FILE", path("peer-secret"))
            .env("LEASEHOLD_POSTGRES__URL", self.postgres.url_at(postgres))
            .env("LEASEHOLD_POSTGRES__POOL_MAX", "4")
            .env("LEASEHOLD_AZURE__CONTAINER", CONTAINER)
            .env("LEASEHOLD_AZURE__CREATE_CONTAINER", "true")
            .env("LEASEHOLD_AZURE__CONNECTION_STRING", self.azurite.connection_string_at(azurite))
            .envs(&settings.variables);
        command
    }

    async fn pid(&self, replica: &str) -> Option<Pid> {
        let running = self.running.lock().await;
        running.get(replica)?.0.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }
}

#[async_trait]
impl Launcher for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    async fn start(&self, replica: &'static str, settings: &Settings) {
        let log = fs::File::options().create(true).append(true).open(self.log(replica)).unwrap();
        let begins = usize::try_from(log.metadata().unwrap().len()).unwrap();
        let mut command = self.command(replica, settings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        let before = self.running.lock().await.insert(replica, (command.spawn().unwrap(), begins));
        assert!(before.is_none(), "{replica} runs already");
    }

    async fn signal(&self, replica: &'static str, signal: Signal) {
        let pid = self.pid(replica).await.unwrap_or_else(|| panic!("{replica} does not run"));
        kill_process(pid, signal).unwrap();
    }

    async fn ended(&self, replica: &'static str, limit: Duration) -> Ended {
        let (mut child, begins) = self.running.lock().await.remove(replica).unwrap();
        let status = within(limit, replica, child.wait()).await.unwrap();
        let log = fs::read_to_string(self.log(replica)).unwrap();
        Ended { code: status.code(), said: log[begins..].to_owned() }
    }

    fn endpoint(&self, replica: &'static str) -> String {
        match &self.network {
            Network::Loopback(ports) => format!("http://127.0.0.1:{}", ports[replica]),
            Network::Namespaces(namespaces) => namespaces.endpoint(replica),
        }
    }

    fn front(&self) -> Front {
        Front::Service
    }

    fn descriptors(&self, replica: &'static str) -> Result<usize, Unsupported> {
        let running = self.running.try_lock().unwrap();
        let pid = running[replica].0.id().unwrap();
        Ok(fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).unwrap().count())
    }

    fn has_previous_build(&self) -> Result<(), Unsupported> {
        match env::var_os(PREVIOUS) {
            Some(_) => Ok(()),
            None => Err(Unsupported(format!(
                "{PREVIOUS} names no build before this one, which `cargo xtask test --fleet` makes"
            ))),
        }
    }

    async fn cut(&self, cut: Cut) -> Result<(), Unsupported> {
        match &self.network {
            Network::Namespaces(namespaces) => namespaces.cut(cut),
            Network::Loopback(_) => return Err(Unsupported("nothing is cut on loopback".to_owned())),
        }
        Ok(())
    }

    async fn heal(&self, cut: Cut) {
        if let Network::Namespaces(namespaces) = &self.network {
            namespaces.heal(cut);
        }
    }
}
