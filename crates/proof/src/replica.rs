//! A replica whose points can be armed.

use std::{path::PathBuf, sync::Arc, thread, time::Duration};

use clap::Parser;
use leasehold_server::{Edges, Service, Stores};
use leasehold_testkit::{FaultyBlobs, FaultyLeases};
use leasehold_types::LeaseKey;
use tokio::{net::TcpListener, sync::mpsc};

use crate::{Arm, Arms, Times, World, arms::say, world::ProofError};

/// A replica of the product's own service, with somebody at its points.
#[derive(Clone, Debug, Parser)]
#[command(name = "leasehold-replica", version)]
pub struct ReplicaArgs {
    /// The directory that the fleet's processes share.
    #[arg(long)]
    pub dir: PathBuf,
    /// `embedded`, or the name of a schema and container.
    #[arg(long)]
    pub world: String,
    /// This replica's id.
    #[arg(long)]
    pub replica: String,
    /// The tenant whose steps count.
    #[arg(long)]
    pub tenant: LeaseKey,
    /// The ttl in milliseconds.
    #[arg(long)]
    pub ttl_ms: u64,
    /// The margin in milliseconds.
    #[arg(long)]
    pub margin_ms: u64,
    /// What is logged, as `tracing` filters are written; nothing where it is not set.
    #[arg(long)]
    pub log: Option<String>,
    /// What is armed from the beginning.
    #[arg(long = "arm")]
    pub arms: Vec<Arm>,
}

/// Runs it until the process is killed. Says `listening <url>` on the standard output, then `reached <point>` at each armed point;
/// obeys the standard input.
pub async fn run_replica(args: ReplicaArgs) -> Result<(), ProofError> {
    if let Some(filter) = &args.log {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
    let world = World::named(&args.world)?;
    let times =
        Times { ttl: Duration::from_millis(args.ttl_ms), margin: Duration::from_millis(args.margin_ms) };
    let config = world.config(&args.dir, &args.replica, times)?;
    let blobs = FaultyBlobs::new(world.blobs(&config)?);
    let leases = FaultyLeases::new(world.leases(&config).await?);
    let arms = Arms::new(args.tenant, blobs.clone(), leases.clone(), matches!(world, World::Embedded));
    for arm in args.arms {
        arms.arm(arm);
    }
    let edges = Edges { points: Arc::new(arms.clone()), ..Edges::system() };
    let tokens = world.tokens(&config).await?;
    let stores = Stores { leases: Arc::new(leases), tokens, blobs: Arc::new(blobs) };
    let listener = TcpListener::bind(config.listen_addr()).await?;
    let service = Service::build_with(config, edges, stores).await?;
    thread::spawn(move || arms.obey_input());
    say(&format!("listening http://{}", listener.local_addr()?));
    // Nobody tells it to go: it is killed.
    let (_shutdown, told) = mpsc::channel(1);
    Ok(service.run(listener, told).await?)
}
