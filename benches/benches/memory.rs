//! What a tenant costs while nobody asks for it: memory, descriptors and time on a core, open and not open.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use leasehold_benches::{BenchError, Replica, Table, Usage, event, show, usage_of};
use leasehold_lease::TokioTimer;
use leasehold_types::Timer as _;
use tokio::runtime::Runtime;

/// What this process is to keep: a number of tenants, and whether they stay open. None: the one that measures.
const KEEP: &str = "LEASEHOLD_BENCH_KEEP";

/// How long nobody asks for anything.
const IDLE: Duration = Duration::from_secs(20);

async fn keep(tenants: usize, stay_open: bool) -> Result<(), BenchError> {
    let replica = Replica::start()?;
    stream::iter(0..tenants)
        .map(|number| {
            let replica = &replica;
            async move {
                let handle = replica.open(&format!("tenant-{number:05}")).await?;
                handle.append(vec![event()]).await?;
                if !stay_open {
                    handle.handoff().await?;
                }
                Ok::<_, BenchError>(())
            }
        })
        .buffer_unordered(16)
        .try_collect::<()>()
        .await?;
    println!("kept");
    std::io::stdout().flush()?;
    std::future::pending().await
}

struct Keeping(Child);

impl Keeping {
    fn start(what: &str) -> Result<Self, BenchError> {
        let mut process = Command::new(env::current_exe()?).env(KEEP, what).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        if line.trim() != "kept" {
            return Err(format!("it did not keep {what}").into());
        }
        Ok(Self(process))
    }

    fn usage(&self) -> Result<Usage, BenchError> {
        usage_of(self.0.id())
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        drop(self.0.kill().and_then(|()| self.0.wait()));
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 bytes")]
fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn measure() -> Result<(), BenchError> {
    let runtime = Runtime::new()?;
    let columns = ["a replica with", "memory", "for each tenant", "descriptors", "of one core while idle"];
    let mut table = Table::new("memory", &columns);
    let none = Keeping::start("0 open")?.usage()?;
    for (tenants, state) in [(0, "open"), (1_000, "open"), (4_000, "open"), (10_000, "closed")] {
        let keeping = Keeping::start(&format!("{tenants} {state}"))?;
        let before = keeping.usage()?;
        runtime.block_on(async { TokioTimer.sleep(IDLE).await });
        let after = keeping.usage()?;
        let busy = (after.cpu.saturating_sub(before.cpu)).as_secs_f64() * 100.0 / IDLE.as_secs_f64();
        let what = match (tenants, state) {
            (0, _) => "no tenant".to_owned(),
            (_, "open") => format!("{tenants} open tenants that nobody asks for"),
            _ => format!("{tenants} tenants that it handed off"),
        };
        let each = match tenants {
            0 => String::new(),
            _ => format!("{:.1} KiB", kib(after.resident.saturating_sub(none.resident)) / f64::from(tenants)),
        };
        let memory = format!("{:.1} MiB", kib(after.resident) / 1024.0);
        table.row(&[what, memory, each, after.descriptors.to_string(), format!("{busy:.2} %")]);
    }
    println!("idle for {}", show(IDLE));
    table.keep()
}

fn main() -> Result<(), BenchError> {
    let Ok(what) = env::var(KEEP) else { return measure() };
    let (tenants, state) = what.split_once(' ').ok_or("a number and a state")?;
    Runtime::new()?.block_on(keep(tenants.parse()?, state == "open"))
}
