//! A network for each replica and one for the servers, with a router between them that can lose packets.
//!
//! Nothing of it touches the machine's own network. Servers stay on the machine's loopback; sockets that a thread has made inside the
//! servers' namespace, and that work from anywhere, carry bytes between the two.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process,
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::{io::copy_bidirectional, process::Command, sync::oneshot};

use super::launcher::{Cut, End, Unsupported};

/// Where each replica listens, inside.
pub(super) const PORT: u16 = 7400;
/// Where the servers are, inside.
const SERVERS: &str = "servers";
pub(super) const POSTGRES: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 213, 0, 3)), 5432);
pub(super) const STORE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 213, 0, 4)), 10000);
/// How long it may take to connect to a replica from the servers' network.
const CONNECT_MAX: Duration = Duration::from_secs(2);

type Wanted = (SocketAddr, oneshot::Sender<std::io::Result<TcpStream>>);

pub(crate) struct Namespaces {
    prefix: String,
    /// By replica, its address inside and the port of this machine's loopback that leads there.
    replicas: BTreeMap<&'static str, (Ipv4Addr, u16)>,
}

/// Runs `ip` with these words.
fn ip(words: &str) -> Result<(), String> {
    let output = process::Command::new("ip").args(words.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("`ip {words}`: {}", said.trim())) }
}

impl Namespaces {
    /// Whether this machine lets us.
    pub(crate) fn can_be_made() -> Result<(), Unsupported> {
        let name = format!("leasehold-{}-try", process::id());
        ip(&format!("netns add {name}"))
            .and_then(|()| ip(&format!("netns del {name}")))
            .map_err(|why| Unsupported(format!("no network namespaces here: {why}")))
    }

    /// Networks for these replicas, and ways to servers that listen on the machine's loopback.
    pub(crate) fn new(replicas: &[&'static str], postgres: SocketAddr, store: SocketAddr) -> Self {
        sweep();
        let prefix = format!("leasehold-{}-", process::id());
        let mut made = Self { prefix, replicas: BTreeMap::new() };
        let router = made.namespace("router");
        ip(&format!("netns add {router}")).unwrap();
        let forward = "echo 1 >/proc/sys/net/ipv4/ip_forward";
        let status =
            process::Command::new("ip").args(["netns", "exec", &router, "sh", "-c", forward]).status();
        assert!(status.unwrap().success(), "the router forwards nothing");
        for (number, name) in [SERVERS].iter().chain(replicas).enumerate() {
            made.join(number, name);
        }
        let servers = made.namespace(SERVERS);
        for more in [POSTGRES, STORE] {
            ip(&format!("-n {servers} addr add {}/24 dev eth0", more.ip())).unwrap();
        }
        for (inside, outside) in [(POSTGRES, postgres), (STORE, store)] {
            let listener = within(&servers, move || TcpListener::bind(inside)).unwrap();
            relay(listener, move || tokio::net::TcpStream::connect(outside));
        }
        let connect = connector(servers);
        for (number, replica) in replicas.iter().enumerate() {
            let addr = Ipv4Addr::new(10, 213, u8::try_from(number + 1).unwrap(), 2);
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            made.replicas.insert(replica, (addr, listener.local_addr().unwrap().port()));
            let connect = connect.clone();
            relay(listener, move || {
                let (tell, told) = oneshot::channel();
                let asked = connect.send(((addr, PORT).into(), tell));
                async move {
                    asked.map_err(std::io::Error::other)?;
                    let stream = told.await.map_err(std::io::Error::other)??;
                    stream.set_nonblocking(true)?;
                    tokio::net::TcpStream::from_std(stream)
                }
            });
        }
        made
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A namespace with one cable to the router.
    fn join(&self, number: usize, name: &str) {
        let (router, own) = (self.namespace("router"), self.namespace(name));
        for words in [
            format!("netns add {own}"),
            format!("link add v-{name} netns {router} type veth peer name eth0 netns {own}"),
            format!("-n {own} addr add 10.213.{number}.2/24 dev eth0"),
            format!("-n {own} link set lo up"),
            format!("-n {own} link set eth0 up"),
            format!("-n {router} addr add 10.213.{number}.1/24 dev v-{name}"),
            format!("-n {router} link set v-{name} up"),
            format!("-n {own} route add default via 10.213.{number}.1"),
        ] {
            ip(&words).unwrap();
        }
    }

    /// `binary` in the network of this replica.
    pub(super) fn command(&self, replica: &str, binary: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(replica)]).arg(binary);
        command
    }

    /// Where others find it.
    pub(super) fn addr(&self, replica: &str) -> SocketAddr {
        (self.replicas[replica].0, PORT).into()
    }

    /// Where it is found from outside.
    pub(super) fn endpoint(&self, replica: &str) -> String {
        format!("http://127.0.0.1:{}", self.replicas[replica].1)
    }

    /// Packets that go there are lost from now on.
    pub(super) fn cut(&self, cut: Cut) {
        ip(&self.rule("add", cut)).unwrap();
    }

    pub(super) fn heal(&self, cut: Cut) {
        ip(&self.rule("del", cut)).unwrap();
    }

    fn rule(&self, verb: &str, cut: Cut) -> String {
        let replica = self.addr(cut.replica).ip();
        let end = match cut.end {
            End::Postgres => POSTGRES.ip(),
            End::Store => STORE.ip(),
            End::Replica(other) => self.addr(other).ip(),
        };
        let (from, to) = if cut.outward { (replica, end) } else { (end, replica) };
        format!("-n {} rule {verb} pref 10 from {from} to {to} blackhole", self.namespace("router"))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        remove(&self.prefix);
    }
}

/// Removes what runs have left that were killed.
fn sweep() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix("leasehold-").and_then(|rest| rest.split('-').next()) else {
            continue;
        };
        if !Path::new("/proc").join(owner).exists() {
            drop(ip(&format!("netns del {name}")));
        }
    }
}

fn remove(prefix: &str) {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            // One that is not removed is swept by the next run.
            drop(ip(&format!("netns del {name}")));
        }
    }
}

/// What `make` makes in the network of that namespace.
fn within<T: Send>(namespace: &str, make: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        let file = fs::File::open(Path::new("/run/netns").join(namespace)).unwrap();
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network)).unwrap();
        make()
    };
    // The thread ends, and nothing else is in that network.
    thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

/// Connects from that namespace to whatever is asked for.
fn connector(namespace: String) -> mpsc::Sender<Wanted> {
    let (ask, asked) = mpsc::channel::<Wanted>();
    thread::spawn(move || {
        within(&namespace, move || {
            for (addr, tell) in asked {
                drop(tell.send(TcpStream::connect_timeout(&addr, CONNECT_MAX)));
            }
        });
    });
    ask
}

/// Carries bytes between whoever connects to `listener` and what `connect` gives, until this program ends.
fn relay<F>(listener: TcpListener, connect: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = std::io::Result<tokio::net::TcpStream>> + Send + 'static,
{
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    tokio::spawn(async move {
        loop {
            let Ok((mut from, _)) = listener.accept().await else { return };
            let to = connect();
            tokio::spawn(async move {
                if let Ok(mut to) = to.await {
                    // Either side's end is the end.
                    drop(copy_bidirectional(&mut from, &mut to).await);
                }
            });
        }
    });
}
