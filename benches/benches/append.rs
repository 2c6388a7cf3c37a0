//! An append through the guard, beside the same rows written by the same statement on a connection without one.
//!
//! `cargo bench -p leasehold-benches`. Trust the ratios of one run, not its absolutes.

#![expect(clippy::expect_used, reason = "a bench that cannot start has nothing to measure")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use leasehold_benches::Replica;
use leasehold_ledger::{Json, NewEvent};
use rusqlite::Connection;
use tokio::runtime::Runtime;

const PAYLOAD: &str = r#"{"text":"a message of the length that messages have, more or less","n":17}"#;

fn event() -> NewEvent {
    NewEvent::new("message", "agent").with_payload(Json::parse(PAYLOAD).expect("a literal"))
}

/// A ledger's file, closed by its tenure, on a connection of our own with the settings of the guarded one.
fn raw(runtime: &Runtime) -> (Replica, Connection) {
    let replica = runtime.block_on(async { Replica::start() }).expect("a replica");
    let handle = runtime.block_on(replica.open("raw")).expect("a tenant");
    runtime.block_on(handle.append(vec![event()])).expect("an append");
    let from = leasehold_ledger::ledger_path(&leasehold_tenure::tenant_root(
        &replica.router.options().state_root,
        handle.key(),
    ));
    runtime.block_on(handle.abandon()).expect("an abandon");
    let connection = Connection::open(from).expect("the ledger's file");
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON")
        .expect("pragmas");
    (replica, connection)
}

fn insert(connection: &Connection) {
    connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
    connection
        .prepare_cached("INSERT INTO events (ts, actor, kind, payload) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| insert.execute((1_790_000_000_000_i64, "agent", "message", PAYLOAD)))
        .expect("insert");
    connection.execute_batch("COMMIT").expect("commit");
}

fn one_at_a_time(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("append one");
    group.throughput(Throughput::Elements(1));

    let (_replica, connection) = raw(&runtime);
    group.bench_function("raw connection", |bench| bench.iter(|| insert(&connection)));

    let replica = runtime.block_on(async { Replica::start() }).expect("a replica");
    let handle = runtime.block_on(replica.open("guarded")).expect("a tenant");
    let batch = [event()];
    group.bench_function("guarded run", |bench| {
        bench.iter(|| {
            handle
                .run(|view| view.append(&batch))
                .map_err(|error| matches!(error, leasehold_tenure::RunError::Work(_)))
                .expect("an append")
        });
    });
    group.bench_function("group commit, one caller", |bench| {
        bench.iter(|| runtime.block_on(handle.append(vec![event()])).expect("an append"));
    });
    group.finish();
}

fn many_at_a_time(criterion: &mut Criterion) {
    const CALLERS: usize = 32;
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("append by 32 callers");
    group.throughput(Throughput::Elements(CALLERS as u64));

    let (_replica, connection) = raw(&runtime);
    group.bench_function("raw connection, one after the other", |bench| {
        bench.iter(|| (0..CALLERS).for_each(|_| insert(&connection)));
    });

    let replica = runtime.block_on(async { Replica::start() }).expect("a replica");
    let handle = runtime.block_on(replica.open("guarded")).expect("a tenant");
    group.bench_function("group commit", |bench| {
        bench.iter(|| {
            let appends = (0..CALLERS).map(|_| handle.append(vec![event()]));
            runtime.block_on(futures::future::try_join_all(appends)).expect("appends")
        });
    });
    group.finish();
}

criterion_group!(benches, one_at_a_time, many_at_a_time);
criterion_main!(benches);
