//! The storage account that the tests share, each in a container of its own.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_blob::{AzureCredential, AzureLimits, AzureOptions, AzureStore};
use leasehold_types::{Entropy, SystemClock, Timer};

/// The machine's time: a real server is at the other end.
#[derive(Debug)]
pub(crate) struct RealTimer;

impl Timer for RealTimer {
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        #[expect(clippy::disallowed_methods, reason = "a timer is where waiting comes from")]
        Box::pin(tokio::time::sleep(wait))
    }
}

const VARIABLE: &str = "LEASEHOLD_TEST_AZURITE";

/// Azurite's connection string.
pub(crate) fn connection_string() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} holds no connection string: run `cargo xtask test`, which starts Azurite and sets it"
        )
    })
}

/// A value of the connection string.
pub(crate) fn part(name: &str) -> String {
    let text = connection_string();
    let parts = text.split(';').filter_map(|pair| pair.trim().split_once('='));
    let found = parts.into_iter().find_map(|(key, value)| (key == name).then(|| value.to_owned()));
    found.unwrap_or_else(|| panic!("{VARIABLE} has no {name}"))
}

/// The name of a container that nobody else uses.
pub(crate) fn container() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("t{}-{}", Entropy::system().attempt_id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Short waits, so that a fault costs a test no time.
pub(crate) fn limits() -> AzureLimits {
    AzureLimits { wait_first: Duration::from_millis(5), ..AzureLimits::default() }
}

pub(crate) fn options(credential: AzureCredential, container: &str) -> AzureOptions {
    let (timer, clock) = (Arc::new(RealTimer), Arc::new(SystemClock));
    let mut options = AzureOptions::new(credential, container, timer, clock, Arc::new(Entropy::system()));
    options.limits = limits();
    options
}

/// The shared account, by its connection string.
pub(crate) fn shared(container: &str) -> AzureOptions {
    options(AzureCredential::ConnectionString(connection_string().into()), container)
}

/// A store on a container that was made for it.
pub(crate) async fn fresh() -> (AzureStore, String) {
    let container = container();
    let store = AzureStore::connect(shared(&container)).unwrap();
    assert!(store.create_container().await.unwrap());
    (store, container)
}
