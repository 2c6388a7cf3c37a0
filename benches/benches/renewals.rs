//! Ten thousand leases of one replica renewed by whole batches, beside one row at a time, in one run on a real Postgres; and what a
//! thousand rounds leave behind in the table.

use std::{net::SocketAddr, slice, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use leasehold_benches::{BenchError, CloudAddresses, Relay, Relayed, Stopwatch, Table, median, ratio, show};
use leasehold_lease::{Acquisition, Claim, LeaseStore as _, PostgresLeaseStore, PostgresOptions, Renewal};
use leasehold_services::OwnServers;
use leasehold_types::{Entropy, LeaseKey, ReplicaId};
use tokio_postgres::{Client, NoTls};

const LEASES: usize = 10_000;
const ROUNDS: u32 = 1_000;
/// The keeper's chunks, and how many it asks for at the same time.
const CHUNK: usize = 1_000;
const SIDE_BY_SIDE: usize = 4;
const TTL: Duration = Duration::from_secs(600);

async fn take_all(store: &PostgresLeaseStore) -> Result<Vec<Claim>, BenchError> {
    let (replica, entropy): (ReplicaId, _) = ("bench".parse()?, Entropy::system());
    stream::iter(0..LEASES)
        .map(|number| {
            let (replica, tenure) = (replica.clone(), entropy.tenure_id());
            async move {
                let key: LeaseKey = format!("bench/tenant-{number:05}").parse()?;
                match store.acquire(&key, &replica, tenure, TTL).await? {
                    Acquisition::Granted(grant) => Ok(Claim { key, replica, tenure, epoch: grant.epoch }),
                    other => Err(BenchError::from(format!("{key} is not granted: {other:?}"))),
                }
            }
        })
        .buffered(8)
        .try_collect()
        .await
}

async fn all_granted(store: &PostgresLeaseStore, claims: &[Claim]) -> Result<(), BenchError> {
    let answers = store.renew(claims, TTL).await?;
    if answers.iter().any(|answer| *answer != Renewal::Granted) {
        return Err("a lease was refused".into());
    }
    Ok(())
}

/// As the keeper asks: whole chunks, a few at the same time.
async fn in_chunks(store: &PostgresLeaseStore, claims: &[Claim]) -> Result<(), BenchError> {
    let chunks = stream::iter(claims.chunks(CHUNK).map(|chunk| all_granted(store, chunk)));
    chunks.buffer_unordered(SIDE_BY_SIDE).try_collect().await
}

async fn one_by_one(store: &PostgresLeaseStore, claims: &[Claim]) -> Result<(), BenchError> {
    for claim in claims {
        all_granted(store, slice::from_ref(claim)).await?;
    }
    Ok(())
}

/// What one whole renewal needs on the wire.
async fn on_the_wire(url: &str, schema: &str, claims: &[Claim]) -> Result<(Relayed, Relayed), BenchError> {
    let (before_host, rest) = url.split_once('@').ok_or("a URL with a user")?;
    let (host, database) = rest.split_once('/').ok_or("a URL with a database")?;
    let target: SocketAddr = host.replace("localhost", "127.0.0.1").parse()?;
    let relay = Relay::start(target).await?;
    let mut through = PostgresOptions::new(format!("{before_host}@{}/{database}", relay.addr));
    schema.clone_into(&mut through.schema);
    let store = PostgresLeaseStore::connect(through).await?;
    // What its connections need once is not what a renewal needs.
    in_chunks(&store, claims).await?;
    let start = relay.passed();
    in_chunks(&store, claims).await?;
    let batched = relay.passed();
    one_by_one(&store, claims).await?;
    let single = relay.passed();
    Ok((less(batched, start), less(single, batched)))
}

const fn less(now: Relayed, then: Relayed) -> Relayed {
    Relayed {
        up: now.up - then.up,
        down: now.down - then.down,
        round_trips: now.round_trips - then.round_trips,
    }
}

async fn table_bytes(session: &Client, schema: &str) -> Result<i64, BenchError> {
    let sql = format!("SELECT pg_total_relation_size('{schema}.lease')");
    Ok(session.query_one(&sql, &[]).await?.get(0))
}

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    // One that waits for its disk at each commit, as one is deployed; the suites' does not.
    let server = OwnServers::of("bench-renewals")?.postgres()?;
    let addresses = CloudAddresses { postgres: server.url(), ..CloudAddresses::find()? };
    let options = addresses.schema().await?;
    let store = PostgresLeaseStore::connect(options.clone()).await?;
    let (session, connection) = tokio_postgres::connect(&addresses.postgres, NoTls).await?;
    tokio::spawn(connection);
    let claims = take_all(&store).await?;
    let (batched_wire, single_wire) = on_the_wire(&addresses.postgres, &options.schema, &claims).await?;

    let (mut batched, mut single) = (Vec::new(), Vec::new());
    // Side by side, so that whatever else the machine does falls on both.
    for _ in 0..3 {
        let watch = Stopwatch::start();
        one_by_one(&store, &claims).await?;
        single.push(watch.read());
        for _ in 0..7 {
            let watch = Stopwatch::start();
            in_chunks(&store, &claims).await?;
            batched.push(watch.read());
        }
    }
    let (batched, single) = (median(&batched), median(&single));

    let columns = ["10,000 leases of one replica, renewed once", "time", "round trips", "bytes sent"];
    let mut table = Table::new("renewals", &columns);
    let row = |table: &mut Table, what: &str, time: Duration, wire: Relayed| {
        table.row(&[what, &show(time), &wire.round_trips.to_string(), &wire.up.to_string()]);
    };
    row(&mut table, "one row at a time, one connection", single, single_wire);
    row(
        &mut table,
        "`LeaseStore::renew`, as the keeper calls it (chunks of 1,000, up to 4 at the same time)",
        batched,
        batched_wire,
    );
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let fewer = |this: u64, that: u64| ratio(this as f64, that as f64);
    table.row(&[
        "times fewer (aim: 50)",
        &ratio(single.as_secs_f64(), batched.as_secs_f64()),
        &fewer(single_wire.round_trips, batched_wire.round_trips),
        &fewer(single_wire.up, batched_wire.up),
    ]);

    let before = table_bytes(&session, &options.schema).await?;
    let watch = Stopwatch::start();
    for _ in 0..ROUNDS {
        in_chunks(&store, &claims).await?;
    }
    let took = watch.read();
    let after = table_bytes(&session, &options.schema).await?;
    session.execute("SELECT pg_stat_force_next_flush()", &[]).await?;
    let sql = format!(
        "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE schemaname = '{}' AND relname = 'lease'",
        options.schema
    );
    let updates = session.query_one(&sql, &[]).await?;
    let (heap_only, all): (i64, i64) = (updates.get(0), updates.get(1));
    table.row(&[
        &format!("{ROUNDS} rounds more: the table has {after} bytes, before them {before}; {:.1} % of its updates were heap-only", {
            #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
            let share = heap_only as f64 * 100.0 / all.max(1) as f64;
            share
        }),
        &show(took / ROUNDS),
        "",
        "",
    ]);
    table.keep()?;
    session.batch_execute(&format!("DROP SCHEMA {} CASCADE", options.schema)).await?;
    Ok(())
}
