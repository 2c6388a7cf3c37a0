//! What these tests stand on: many tenants and what they acknowledged, large images, and a network before the object store.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream};
use leasehold_blob::AzureLimits;
use leasehold_ledger::View;
use leasehold_tenure::{Handle, Router};
use leasehold_testkit::{CloudServers, FaultProxy, Replica, event, keys_of, pass, tenant};
use leasehold_types::{ErrorCode, LeaseKey};
use tokio::task::JoinHandle;

/// How many tenants are opened or asked at a time.
const SIDE_BY_SIDE: usize = 16;
/// Between two rounds of writes.
const BREATH: Duration = Duration::from_millis(20);

/// Short waits: a server that says nothing is given up in seconds. What a machine needs that is five times slower is still inside.
pub(crate) fn short_limits() -> AzureLimits {
    AzureLimits {
        connect: Duration::from_secs(4),
        silence: Duration::from_secs(4),
        request: Duration::from_secs(8),
        patience: Duration::from_secs(16),
        attempts: 2,
        wait_first: Duration::from_millis(20),
        wait_max: Duration::from_secs(2),
    }
}

/// Waits that nothing comes to the end of: a server that is gone is told by its connections.
pub(crate) fn long_limits() -> AzureLimits {
    let long = Duration::from_secs(120);
    AzureLimits { silence: long, request: long, patience: 2 * long, ..short_limits() }
}

/// Starting or ending a server takes its time, and the tenants' tasks go on meanwhile.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// Tenants, each open on one replica, and what each has acknowledged.
#[derive(Clone)]
pub(crate) struct Tenants(Arc<Vec<Open>>);

struct Open {
    handle: Handle,
    acknowledged: Mutex<Vec<String>>,
    /// What was committed as the lease ran out, say, and not acknowledged: it may be there or not, and whoever wrote it was told so.
    unknown: Mutex<Vec<String>>,
}

impl Tenants {
    /// `count` new ones, by turns on each of `replicas`.
    pub(crate) async fn open(replicas: &[&Replica], name: &str, count: usize) -> Self {
        let opening = (0..count).map(|at| {
            let (router, key) =
                (replicas[at % replicas.len()].router.clone(), tenant(&format!("{name}-{at}")));
            async move {
                let handle = router.open(&key).await.expect("it opens");
                Open { handle, acknowledged: Mutex::default(), unknown: Mutex::default() }
            }
        });
        Self(Arc::new(stream::iter(opening).buffered(SIDE_BY_SIDE).collect().await))
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = &Handle> {
        self.0.iter().map(|open| &open.handle)
    }

    /// Writes once to each. Answers the refusals.
    pub(crate) async fn write(&self, written: &str) -> Vec<ErrorCode> {
        let writing = (0..self.0.len()).map(|at| {
            let (tenants, written) = (self.clone(), written.to_owned());
            async move {
                let open = &tenants.0[at];
                let answer = open.handle.append(vec![event(&written)]).await;
                let told = match &answer {
                    Ok(_) => Some(&open.acknowledged),
                    Err(error) => error.outcome_unknown().then_some(&open.unknown),
                };
                if let Some(told) = told {
                    told.lock().unwrap_or_else(PoisonError::into_inner).push(written);
                }
                answer.map(drop).map_err(|error| error.code())
            }
        });
        let answers: Vec<Result<(), ErrorCode>> =
            stream::iter(writing).buffered(SIDE_BY_SIDE).collect().await;
        answers.into_iter().filter_map(Result::err).collect()
    }

    /// Each with what it has acknowledged, in order.
    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = (&Handle, Vec<String>)> {
        self.0.iter().map(|open| {
            (&open.handle, open.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone())
        })
    }

    /// That all of them have what they acknowledged, and nothing else but what they said may be there.
    pub(crate) fn check(&self) {
        for (open, (handle, acknowledged)) in self.0.iter().zip(self.acknowledged()) {
            let unknown = open.unknown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut there = keys_of(handle);
            there.retain(|written| !unknown.contains(written));
            assert_eq!(there, acknowledged, "{}, beside {unknown:?}", handle.key());
        }
    }
}

/// Something that goes on until it is ended.
pub(crate) struct Going<T> {
    ends: Arc<AtomicBool>,
    task: JoinHandle<T>,
}

impl<T> Going<T> {
    pub(crate) async fn end(self) -> T {
        self.ends.store(true, Ordering::SeqCst);
        self.task.await.expect("no panic")
    }
}

/// Writes round after round to `tenants`, whatever is refused. Answers the refusals.
pub(crate) fn writing(tenants: &Tenants) -> Going<Vec<ErrorCode>> {
    let (tenants, ends) = (tenants.clone(), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&ends);
    let task = tokio::spawn(async move {
        let (mut refusals, mut round) = (Vec::new(), 0);
        while !ended.load(Ordering::SeqCst) {
            refusals.extend(tenants.write(&format!("going-{round}")).await);
            round += 1;
            pass(BREATH).await;
        }
        refusals
    });
    Going { ends, task }
}

/// Tries to open `keys` one after the other, again and again. Answers what it got, and why it got nothing.
pub(crate) fn intruding(router: &Router, keys: Vec<LeaseKey>) -> Going<(Vec<Handle>, Vec<ErrorCode>)> {
    let (router, ends) = (router.clone(), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&ends);
    let task = tokio::spawn(async move {
        let (mut opened, mut refusals) = (Vec::new(), Vec::new());
        for key in keys.iter().cycle() {
            if ended.load(Ordering::SeqCst) {
                break;
            }
            if router.handle_of(key).is_some() {
                pass(BREATH).await;
                continue;
            }
            match router.open(key).await {
                Ok(handle) => opened.push(handle),
                Err(error) => refusals.push(error.code()),
            }
        }
        (opened, refusals)
    });
    Going { ends, task }
}

/// Writes `mib` MiB that nothing compresses.
pub(crate) fn insert_noise(handle: &Handle, mib: u32) {
    let grow = |view: &mut View<'_>| {
        view.execute("CREATE TABLE IF NOT EXISTS noise (body BLOB NOT NULL) STRICT", &[])?;
        for _ in 0..mib {
            view.execute("INSERT INTO noise VALUES (randomblob(1048576))", &[])?;
        }
        Ok::<_, leasehold_ledger::LedgerError>(())
    };
    handle.run(grow).expect("written");
}

/// A network before the object store that listens at `target`, and the servers of a pair whose way leads through it.
pub(crate) async fn behind_a_network(
    postgres: String,
    azurite: &str,
    target: SocketAddr,
    azure_limits: AzureLimits,
) -> (FaultProxy, CloudServers) {
    let proxy = FaultProxy::start(target).await.expect("a proxy");
    let azurite = Some(azurite.replace(&target.to_string(), &proxy.addr().to_string()));
    (proxy, CloudServers { postgres, azurite, azure_limits })
}

/// The address in a connection string of Azurite's.
pub(crate) fn azurite_addr(connection_string: &str) -> SocketAddr {
    let endpoint = connection_string.split_once("http://").expect("an endpoint").1;
    endpoint.split('/').next().and_then(|addr| addr.parse().ok()).expect("an address")
}
