//! An append over HTTP, beside a bare axum handler that inserts the same row: one replica process, one client process, one
//! connection and 32.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use leasehold_benches::{BenchError, Load, RawLedger, Table, drive, percentile, ratio, show};
use leasehold_ledger::NewEvent;
use leasehold_server::{Config, Service};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::{net::TcpListener, runtime::Runtime, sync::mpsc};

/// Which server this process is to be; none: the driver.
const SERVE: &str = "LEASEHOLD_BENCH_SERVE";

const BODY: &str = r#"{"kind":"message","actor":"agent","payload":{"text":"a message of the length that messages have, more or less","n":17}}"#;
const PATH: &str = "/v1/orgs/bench/tenants/one/events";
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;

#[derive(Deserialize)]
struct Body {
    kind: String,
    actor: String,
    payload: Box<RawValue>,
}

#[derive(Serialize)]
struct Answer {
    position: String,
    duplicate: bool,
}

async fn insert(
    State(raw): State<Arc<Mutex<RawLedger>>>,
    Json(body): Json<Body>,
) -> Result<Json<Answer>, StatusCode> {
    let event = NewEvent::new(&body.kind, &body.actor);
    let seq = raw
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert_event(&event, body.payload.get())
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(Json(Answer { position: format!("1-{seq}"), duplicate: false }))
}

fn tell(addr: SocketAddr) -> Result<(), BenchError> {
    println!("{addr}");
    Ok(std::io::stdout().flush()?)
}

async fn serve_bare() -> Result<(), BenchError> {
    let raw = Arc::new(Mutex::new(RawLedger::make_here().await?));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    tell(listener.local_addr()?)?;
    axum::serve(listener, Router::new().route(PATH, post(insert)).with_state(raw)).await?;
    Ok(())
}

async fn serve_ours() -> Result<(), BenchError> {
    let directory = tempfile::tempdir()?;
    let mut config = Config::dev(directory.path(), Some("127.0.0.1:0".parse()?))?;
    // Nothing is published beside what is measured; what publishing costs is in another table.
    config.snapshot.every = Duration::ZERO;
    config.snapshot.unflushed_bytes_max = 0;
    let listener = TcpListener::bind(config.listen_addr()).await?;
    let addr = listener.local_addr()?;
    let service = Service::build(config).await?;
    tell(addr)?;
    // It ends with its parent.
    let (_shutdown, told) = mpsc::channel(1);
    Ok(service.run(listener, told).await?)
}

/// A server in a process of its own, which is killed when this is dropped.
struct Server {
    process: Child,
    addr: SocketAddr,
}

impl Server {
    fn start(which: &str) -> Result<Self, BenchError> {
        let mut process =
            Command::new(env::current_exe()?).env(SERVE, which).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        Ok(Self { process, addr: line.trim().parse()? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill().and_then(|()| self.process.wait()));
    }
}

/// The run in the middle of some.
fn middle(mut loads: Vec<Load>) -> Option<Load> {
    loads.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    loads.into_iter().nth(ROUNDS / 2)
}

fn measure() -> Result<(), BenchError> {
    let runtime = Runtime::new()?;
    let mut table = Table::new(
        "http",
        &["what", "connections", "answers/s", "p50", "p99", "of the bare handler's", "aim"],
    );
    for connections in [1, 32] {
        let (bare, ours) = (Server::start("bare")?, Server::start("ours")?);
        let load =
            |server: &Server, length| runtime.block_on(drive(server.addr, PATH, BODY, connections, length));
        // Until both are warm.
        load(&bare, Duration::from_secs(1))?;
        load(&ours, Duration::from_secs(1))?;
        let (mut bares, mut oursers) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bares.push(load(&bare, ROUND)?);
            oursers.push(load(&ours, ROUND)?);
        }
        let (bare, ours) = (middle(bares).ok_or("no round")?, middle(oursers).ok_or("no round")?);
        for (what, load, aim) in
            [("a bare axum handler, one INSERT", &bare, ""), ("`POST …/events`", &ours, "0.80")]
        {
            table.row(&[
                what,
                &connections.to_string(),
                &format!("{:.0}", load.rate()),
                &show(percentile(&load.answers, 50)),
                &show(percentile(&load.answers, 99)),
                &ratio(load.rate(), bare.rate()),
                aim,
            ]);
        }
    }
    table.keep()
}

fn main() -> Result<(), BenchError> {
    match env::var(SERVE).as_deref() {
        Ok("bare") => Runtime::new()?.block_on(serve_bare()),
        Ok(_) => Runtime::new()?.block_on(serve_ours()),
        Err(_) => measure(),
    }
}
