//! The write gap of a move while the tenant is written to, beside the calls to the same stores that such a move cannot do without.
//!
//! Two replicas on Postgres and Azurite, four writers that come through either of them, and a tenant that is handed to and fro. The gap is what the old
//! owner measures (decision 0037): from the last moment at which it can acknowledge until the other one says that it serves.

use std::{
    fs::{self, File},
    io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_benches::{
    BenchError, CloudAddresses, Connection, Stopwatch, Table, fill, median, percentile, ratio, show,
};
use leasehold_blob::{BlobStore, Payload};
use leasehold_lease::{Acquisition, Claim, LeaseStore, PostgresLeaseStore, TokioTimer};
use leasehold_server::{Config, Edges, Service, Shutdown, Stores};
use leasehold_tenure::Router;
use leasehold_types::{Entropy, LeaseKey, Timer as _};
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet};

const SECRET: &str = "the-secret-of-this-bench";
const KEY: &str = "bench/one";
const TENANT: &str = "/v1/orgs/bench/tenants/one";
const BODY: &str =
    r#"{"kind":"message","actor":"agent","payload":{"text":"a message of the length that messages have"}}"#;
const WRITERS: usize = 4;
/// What a writer waits between an answer and its next request: so that the ledger stays about as large as it is meant to be.
const PAUSE: Duration = Duration::from_millis(40);
/// How often each call to a store is timed alone.
const ROUNDS: usize = 31;
/// zstd's level in the product.
const LEVEL: i32 = 1;

struct Replica {
    name: &'static str,
    addr: SocketAddr,
    router: Router,
    /// It goes when this is dropped with the process.
    _shutdown: mpsc::Sender<Shutdown>,
}

async fn start(name: &'static str, directory: &Path, stores: &Stores) -> Result<Replica, BenchError> {
    let home = directory.join(name);
    let mut config = Config::dev(&home, Some("127.0.0.1:0".parse()?))?;
    config.replica = Some(name.parse()?);
    config.peers.secret_file = Some(directory.join("peers"));
    config.derivation_key_file = Some(directory.join("derivation.key"));
    let listener = TcpListener::bind(config.listen_addr()).await?;
    let addr = listener.local_addr()?;
    let service = Service::build_with(config, Edges::system(), stores.clone()).await?;
    let router = service.router().clone();
    let (shutdown, told) = mpsc::channel(1);
    tokio::spawn(service.run(listener, told));
    let mut asking = Connection::open(addr).await?;
    while asking.get("/readyz").await?.0 != 200 {
        TokioTimer.sleep(Duration::from_millis(20)).await;
    }
    Ok(Replica { name, addr, router, _shutdown: shutdown })
}

/// The sum of all gaps that this replica has measured.
async fn gaps(asking: &mut Connection) -> Result<f64, BenchError> {
    let (_, text) = asking.get("/metrics").await?;
    let text = String::from_utf8(text)?;
    let sum = text.lines().find_map(|line| line.strip_prefix("leasehold_move_write_gap_seconds_sum "));
    Ok(sum.ok_or("there is no such metric")?.parse()?)
}

/// Writes until it is told to stop, and answers how long each answer took. A write that fails is the bench's end.
async fn write(addr: SocketAddr, stop: Arc<AtomicBool>) -> Result<Vec<Duration>, BenchError> {
    let mut connection = Connection::open(addr).await?;
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let asked = Stopwatch::start();
        let (status, text) = connection.post(&format!("{TENANT}/events"), BODY).await?;
        if status != 201 {
            return Err(format!("a write was answered {status}: {}", String::from_utf8_lossy(&text)).into());
        }
        answers.push(asked.read());
        TokioTimer.sleep(PAUSE).await;
    }
    Ok(answers)
}

/// Times `call` alone, again and again.
async fn timed<F: AsyncFnMut(usize) -> Result<(), BenchError>>(mut call: F) -> Result<Duration, BenchError> {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let watch = Stopwatch::start();
        call(round).await?;
        times.push(watch.read());
    }
    Ok(median(&times))
}

/// What a move cannot do without, each thing alone on the same stores.
struct Floor {
    /// Of the protocol's calls to the lease store: read, release, acquire, renew.
    rows: Duration,
    /// Of its small objects: two puts, one read, three listings.
    objects: Duration,
    /// Of the image: compressed, put, downloaded, decompressed.
    image: Duration,
    /// One request between the replicas.
    hop: Duration,
}

impl Floor {
    fn all(&self) -> Duration {
        self.rows + self.objects + self.image + self.hop
    }
}

async fn rows(leases: &dyn LeaseStore, entropy: &Entropy) -> Result<Duration, BenchError> {
    let (key, replica): (LeaseKey, _) = ("beside/one".parse()?, "beside".parse()?);
    let ttl = Duration::from_secs(10);
    timed(async |_| {
        let tenure = entropy.tenure_id();
        let Acquisition::Granted(grant) = leases.acquire(&key, &replica, tenure, ttl).await? else {
            return Err("the row beside is held".into());
        };
        let claim = Claim { key: key.clone(), replica: replica.clone(), tenure, epoch: grant.epoch };
        leases.renew(std::slice::from_ref(&claim), ttl).await?;
        leases.read(&key).await?;
        leases.release(&claim).await?;
        Ok(())
    })
    .await
}

async fn objects(blobs: &dyn BlobStore) -> Result<Duration, BenchError> {
    let small = || Payload::Bytes(vec![b'x'; 600].into());
    let put = timed(async |round| {
        blobs.put_if_absent(&format!("beside/one/e00000001/small-{round}").parse()?, small()).await?;
        Ok(())
    })
    .await?;
    let first = "beside/one/e00000001/small-0".parse()?;
    let get = timed(async |_| blobs.get(&first, 1 << 20).await.map(drop).map_err(Into::into)).await?;
    let prefix = "beside/two/".parse()?;
    let list = timed(async |_| blobs.list(&prefix).await.map(drop).map_err(Into::into)).await?;
    Ok(2 * put + get + 3 * list)
}

async fn image(blobs: &dyn BlobStore, ledger: &Path, scratch: &Path) -> Result<Duration, BenchError> {
    let (packed, fetched, unpacked) =
        (scratch.join("packed"), scratch.join("fetched"), scratch.join("unpacked"));
    let mut taken = [const { Vec::new() }; 4];
    for round in 0..5 {
        let watch = Stopwatch::start();
        let mut encoder = zstd::Encoder::new(File::create(&packed)?, LEVEL)?;
        io::copy(&mut File::open(ledger)?, &mut encoder)?;
        encoder.finish()?;
        taken[0].push(watch.read());
        let key = format!("beside/one/e00000001/image-{round}").parse()?;
        let watch = Stopwatch::start();
        blobs.put_if_absent(&key, Payload::File(packed.clone())).await?;
        taken[1].push(watch.read());
        let watch = Stopwatch::start();
        blobs.download(&key, &fetched).await?;
        taken[2].push(watch.read());
        let watch = Stopwatch::start();
        let mut decoder = zstd::Decoder::new(File::open(&fetched)?)?;
        io::copy(&mut decoder, &mut File::create(&unpacked)?)?;
        taken[3].push(watch.read());
        fs::remove_file(&fetched)?;
        blobs.delete(&key).await?;
    }
    Ok(taken.iter().map(|times| median(times)).sum())
}

struct Outcome {
    gaps: Vec<Duration>,
    writes: Vec<Duration>,
    floor: Floor,
}

async fn moved(mib: u64, moves: usize, addresses: &CloudAddresses) -> Result<Outcome, BenchError> {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("peers"), SECRET)?;
    fs::write(directory.path().join("derivation.key"), "5e".repeat(32))?;
    let leases = Arc::new(PostgresLeaseStore::connect(addresses.schema().await?).await?);
    let stores = Stores {
        tokens: leases.clone(),
        leases,
        blobs: CloudAddresses::container(&addresses.azurite).await?,
    };
    let replicas =
        [start("one", directory.path(), &stores).await?, start("two", directory.path(), &stores).await?];
    let key: LeaseKey = KEY.parse()?;
    let handle = replicas[0].router.open(&key).await?;
    fill(&handle, mib << 20).await?;
    handle.snapshot().await?;

    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(replicas[writer % 2].addr, Arc::clone(&stop)));
    }
    let mut asking = [Connection::open(replicas[0].addr).await?, Connection::open(replicas[1].addr).await?];
    let mut taken = Vec::new();
    for number in 0..moves {
        // Some writes between two moves.
        TokioTimer.sleep(4 * PAUSE).await;
        let (from, to) = (number % 2, &replicas[(number + 1) % 2]);
        let before = gaps(&mut asking[from]).await?;
        let body = format!("{{\"to\":\"{}\"}}", to.name);
        let (status, text) = asking[from].post(&format!("{TENANT}/handoff"), &body).await?;
        if status != 200 {
            return Err(format!("a move was answered {status}: {}", String::from_utf8_lossy(&text)).into());
        }
        taken.push(Duration::from_secs_f64(gaps(&mut asking[from]).await? - before));
    }
    stop.store(true, Ordering::Relaxed);
    let mut told = Vec::new();
    while let Some(one) = writers.join_next().await {
        told.append(&mut one??);
    }

    let owner = &replicas[moves % 2];
    let root = leasehold_tenure::tenant_root(&owner.router.options().state_root, &key);
    let ledger = leasehold_ledger::ledger_path(&root);
    let floor = Floor {
        rows: rows(&*stores.leases, &Entropy::system()).await?,
        objects: objects(&*stores.blobs).await?,
        image: image(&*stores.blobs, &ledger, directory.path()).await?,
        hop: timed(async |_| asking[0].get("/healthz").await.map(drop)).await?,
    };
    Ok(Outcome { gaps: taken, writes: told, floor })
}

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    let addresses = CloudAddresses::find()?;
    let columns = [
        "ledger",
        "moves",
        "gap p50",
        "gap p99",
        "must: rows",
        "objects",
        "image",
        "hop",
        "all of it",
        "p50 of it",
        "aim",
        "a write meanwhile, p50",
        "the longest",
    ];
    let mut table = Table::new("gap", &columns);
    for (mib, moves) in [(1, 60), (64, 30)] {
        let Outcome { gaps, writes, floor } = moved(mib, moves, &addresses).await?;
        let (p50, all) = (percentile(&gaps, 50), floor.all());
        let ledger = format!("{mib} MiB");
        table.row(&[
            ledger.as_str(),
            &moves.to_string(),
            &show(p50),
            &show(percentile(&gaps, 99)),
            &show(floor.rows),
            &show(floor.objects),
            &show(floor.image),
            &show(floor.hop),
            &show(all),
            &ratio(p50.as_secs_f64(), all.as_secs_f64()),
            "1.50",
            &show(percentile(&writes, 50)),
            &show(percentile(&writes, 100)),
        ]);
    }
    table.keep()
}
