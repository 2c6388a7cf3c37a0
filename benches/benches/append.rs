//! An append through the guard, beside the same rows written by the same statement on a connection without one.
//!
//! `cargo bench -p leasehold-benches --bench append`. Trust the ratios of one run, not its absolutes.

#![expect(clippy::expect_used, reason = "a bench that cannot start has nothing to measure")]

use std::{env, fs, path::PathBuf, time::Duration};

use criterion::{Criterion, Throughput};
use leasehold_benches::{BenchError, RawLedger, Replica, Table, event, ratio, show};
use tokio::runtime::Runtime;

const ONE: &str = "append one";
const MANY: &str = "append by 32 callers";
const CALLERS: usize = 32;

const RAW: &str = "raw connection";
const RUN: &str = "guarded run";
const LONE: &str = "group commit, one caller";
const GROUP: &str = "group commit";

fn one_at_a_time(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group(ONE);
    group.throughput(Throughput::Elements(1));

    let raw = RawLedger::make(&runtime).expect("a raw connection");
    group.bench_function(RAW, |bench| bench.iter(|| raw.insert().expect("an insert")));

    let replica = runtime.block_on(async { Replica::start() }).expect("a replica");
    let handle = runtime.block_on(replica.open("guarded")).expect("a tenant");
    let batch = [event()];
    group.bench_function(RUN, |bench| {
        bench.iter(|| {
            handle
                .run(|view| view.append(&batch))
                .map_err(|error| matches!(error, leasehold_tenure::RunError::Work(_)))
                .expect("an append")
        });
    });
    group.bench_function(LONE, |bench| {
        bench.iter(|| runtime.block_on(handle.append(vec![event()])).expect("an append"));
    });
    group.finish();
}

fn many_at_a_time(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group(MANY);
    group.throughput(Throughput::Elements(CALLERS as u64));

    let raw = RawLedger::make(&runtime).expect("a raw connection");
    group.bench_function(RAW, |bench| {
        bench.iter(|| (0..CALLERS).map(|_| raw.insert().expect("an insert")).max());
    });

    let replica = runtime.block_on(async { Replica::start() }).expect("a replica");
    let handle = runtime.block_on(replica.open("guarded")).expect("a tenant");
    group.bench_function(GROUP, |bench| {
        bench.iter(|| {
            let appends = (0..CALLERS).map(|_| handle.append(vec![event()]));
            runtime.block_on(futures::future::try_join_all(appends)).expect("appends")
        });
    });
    group.finish();
}

/// The median that was measured, from criterion's own record.
fn measured(group: &str, function: &str) -> Result<Duration, BenchError> {
    let home = env::var_os("CRITERION_HOME").map_or_else(|| PathBuf::from("target/criterion"), PathBuf::from);
    let record = home.join(group).join(function).join("new/estimates.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(record)?)?;
    let nanos = record["median"]["point_estimate"].as_f64().ok_or("no median in criterion's record")?;
    Ok(Duration::from_secs_f64(nanos / 1e9))
}

fn table() -> Result<(), BenchError> {
    let mut table = Table::new("append", &["what", "time", "of the raw connection's throughput", "aim"]);
    let rows = [
        (ONE, RAW, "raw connection, one append", ""),
        (ONE, RUN, "`Handle::run`, one append (gate, transaction, gate, commit, gate)", "0.95"),
        (ONE, LONE, "`Handle::append`, one caller (committed where it is)", ""),
        (MANY, RAW, "raw connection, 32 appends one after the other", ""),
        (MANY, GROUP, "`Handle::append`, 32 callers at the same time (group commit)", ""),
    ];
    for (group, function, what, aim) in rows {
        let (time, raw) = (measured(group, function)?, measured(group, RAW)?);
        table.row(&[what, &show(time), &ratio(raw.as_secs_f64(), time.as_secs_f64()), aim]);
    }
    table.keep()
}

fn main() -> Result<(), BenchError> {
    let mut criterion = Criterion::default().configure_from_args();
    one_at_a_time(&mut criterion);
    many_at_a_time(&mut criterion);
    criterion.final_summary();
    table()
}
