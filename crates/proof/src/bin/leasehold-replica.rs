//! A replica for the proof: the product's service, with somebody at its points.

use clap::Parser as _;
use leasehold_proof::{ReplicaArgs, run_replica};

/// Enough that held steps and waiting ones leave the rest of the process at work.
const WORKERS: usize = 8;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let args = ReplicaArgs::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    runtime.block_on(run_replica(args))
}
