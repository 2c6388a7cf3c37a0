//! A relay on loopback that counts what passes: bytes, and how often the direction turned.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp},
};

use crate::BenchError;

/// What has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// Bytes to the server.
    pub up: u64,
    /// Bytes from it.
    pub down: u64,
    /// How often somebody sent after having been answered: the round trips that were waited for.
    pub round_trips: u64,
}

#[derive(Debug, Default)]
struct Counters {
    up: AtomicU64,
    down: AtomicU64,
    round_trips: AtomicU64,
}

/// A relay to one server. It goes with the runtime that it was started in.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens.
    pub addr: SocketAddr,
    counters: Arc<Counters>,
}

impl Relay {
    /// Starts one to `target`, in the current runtime.
    pub async fn start(target: SocketAddr) -> Result<Self, BenchError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let counters = Arc::new(Counters::default());
        let counting = Arc::clone(&counters);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(target).await else { continue };
                drop(client.set_nodelay(true).and_then(|()| server.set_nodelay(true)));
                let answered = Arc::new(AtomicBool::new(true));
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pass(
                    from_client,
                    to_server,
                    Arc::clone(&counting),
                    Arc::clone(&answered),
                    true,
                ));
                tokio::spawn(pass(from_server, to_client, Arc::clone(&counting), answered, false));
            }
        });
        Ok(Self { addr, counters })
    }

    /// What has passed so far.
    #[must_use]
    pub fn passed(&self) -> Relayed {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { up, down, round_trips } = &*self.counters;
        Relayed { up: read(up), down: read(down), round_trips: read(round_trips) }
    }
}

async fn pass(
    mut from: tcp::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    counters: Arc<Counters>,
    answered: Arc<AtomicBool>,
    is_up: bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if is_up {
            counters.up.fetch_add(count as u64, Ordering::Relaxed);
            if answered.swap(false, Ordering::Relaxed) {
                counters.round_trips.fetch_add(1, Ordering::Relaxed);
            }
        } else {
            counters.down.fetch_add(count as u64, Ordering::Relaxed);
            answered.store(true, Ordering::Relaxed);
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    drop(to.shutdown().await);
}
