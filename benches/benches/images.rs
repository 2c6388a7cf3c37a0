//! Opening, snapshotting and handing off a tenant of 1, 16 and 128 MiB, beside copying and compressing the same bytes, in one run on the
//! embedded backends.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::Duration,
};

use leasehold_benches::{BenchError, Replica, Stopwatch, Table, event, fill, median, ratio, show};

/// zstd's level in the product.
const LEVEL: i32 = 1;

/// Reads `from`, compresses it into `to` and has it on the disk: the least that a snapshot can be.
fn compress(from: &Path, to: &Path) -> Result<Duration, BenchError> {
    let watch = Stopwatch::start();
    let mut encoder = zstd::Encoder::new(File::create(to)?, LEVEL)?;
    io::copy(&mut File::open(from)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    Ok(watch.read())
}

/// Reads `from` and decompresses it into `to`: the least that an open can be. The file is a cache and need not be on the disk.
fn decompress(from: &Path, to: &Path) -> Result<Duration, BenchError> {
    let watch = Stopwatch::start();
    let mut decoder = zstd::Decoder::new(File::open(from)?)?;
    io::copy(&mut decoder, &mut File::create(to)?)?;
    Ok(watch.read())
}

#[derive(Default)]
struct Taken {
    compress: Vec<Duration>,
    decompress: Vec<Duration>,
    snapshot: Vec<Duration>,
    handoff: Vec<Duration>,
    open: Vec<Duration>,
}

async fn one_round(replica: &Replica, scratch: &Path, taken: &mut Taken) -> Result<(), BenchError> {
    let watch = Stopwatch::start();
    let handle = replica.open("one").await?;
    taken.open.push(watch.read());

    let ledger = leasehold_ledger::ledger_path(&leasehold_tenure::tenant_root(
        &replica.router.options().state_root,
        handle.key(),
    ));
    let (packed, unpacked) = (scratch.join("packed"), scratch.join("unpacked"));
    taken.compress.push(compress(&ledger, &packed)?);
    taken.decompress.push(decompress(&packed, &unpacked)?);
    fs::remove_file(&unpacked)?;

    handle.append(vec![event()]).await?;
    let watch = Stopwatch::start();
    handle.snapshot().await?.ok_or("nothing was published")?;
    taken.snapshot.push(watch.read());

    handle.append(vec![event()]).await?;
    let watch = Stopwatch::start();
    handle.handoff().await?;
    taken.handoff.push(watch.read());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    let columns = ["ledger", "what", "time", "beside it", "time", "ratio", "aim"];
    let mut table = Table::new("images", &columns);
    for (mib, rounds) in [(0, 21), (1, 15), (16, 9), (128, 5)] {
        let (replica, scratch) = (Replica::start()?, tempfile::tempdir()?);
        let handle = replica.open("one").await?;
        fill(&handle, mib << 20).await?;
        handle.append(vec![event()]).await?;
        handle.handoff().await?;
        let mut taken = Taken::default();
        for _ in 0..rounds {
            one_round(&replica, scratch.path(), &mut taken).await?;
        }
        let (packing, unpacking) = ("read, compress, sync", "read, decompress");
        for (what, ours, beside, floor) in [
            ("snapshot", &taken.snapshot, packing, &taken.compress),
            ("handoff of a tenant that was written to", &taken.handoff, packing, &taken.compress),
            ("open", &taken.open, unpacking, &taken.decompress),
        ] {
            let (ours, floor) = (median(ours), median(floor));
            let times = ratio(ours.as_secs_f64(), floor.as_secs_f64());
            // What the first one takes is the protocol alone: leases, fences, manifests, each of them synced.
            let size = if mib == 0 { "a few events".to_owned() } else { format!("{mib} MiB") };
            table.row(&[&size, what, &show(ours), beside, &show(floor), &times, "1.30"]);
        }
    }
    table.keep()
}
