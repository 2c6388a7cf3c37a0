//! Opening the cloud pair.

use std::{sync::Arc, time::Duration};

use leasehold_blob::{AzureStore, BlobError, ContainerReach};
use leasehold_lease::{LeaseError, PostgresLeaseStore, PostgresOptions};

use super::{Edges, Stores};
use crate::{
    StartError,
    config::{AzureSettings, PostgresSettings},
};

/// How long a start asks a store that is away. Long enough for a database that is restarted with its replicas, short enough that whoever
/// watches sees a start that failed, with its reason, and not one that hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first wait; each further one is twice as long.
const WAIT_FIRST: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Both stores, reached, their tables and container there.
pub(super) async fn open(
    postgres: &PostgresSettings,
    azure: &AzureSettings,
    edges: &Edges,
) -> Result<Stores, StartError> {
    let options = postgres.options()?;
    let leases = patiently(edges, || leases(&options, postgres.migrate)).await?;
    tracing::info!(leases = options.place(), schema = options.schema, "the lease store is there");
    let blobs = AzureStore::connect(azure.options(edges)?)?;
    patiently(edges, || container(&blobs, azure)).await?;
    tracing::info!(images = blobs.place(), "the blob store is there");
    let leases = Arc::new(leases);
    Ok(Stores { tokens: Arc::clone(&leases) as _, leases, blobs: Arc::new(blobs) })
}

/// The lease store. Only where its tables are missing or too old is anything changed, so that a role without the right to change them
/// serves from those that another one made.
async fn leases(options: &PostgresOptions, may_migrate: bool) -> Result<PostgresLeaseStore, StartError> {
    let (schema, found, needed) = match PostgresLeaseStore::connect(options.clone()).await {
        Err(LeaseError::Unmigrated { schema, found, needed }) if may_migrate => (schema, found, needed),
        connected => return Ok(connected?),
    };
    match PostgresLeaseStore::migrate(options).await {
        Ok(migration) => {
            tracing::info!(
                schema,
                from = migration.from,
                to = migration.to,
                "the lease tables were migrated"
            );
        }
        Err(source @ LeaseError::Denied { .. }) => {
            return Err(StartError::MayNotMigrate { schema, found, needed, source });
        }
        Err(other) => return Err(other.into()),
    }
    Ok(PostgresLeaseStore::connect(options.clone()).await?)
}

async fn container(blobs: &AzureStore, azure: &AzureSettings) -> Result<(), StartError> {
    // Nothing of ours has this name: the answer is short, however full the container is.
    match blobs.reach(&"_start/".parse().map_err(BlobError::from)?).await? {
        ContainerReach::Open => return Ok(()),
        ContainerReach::Refused { status, code } => {
            return Err(StartError::ContainerRefused { place: blobs.place(), status, code });
        }
        ContainerReach::Missing => {}
    }
    if !azure.create_container {
        return Err(StartError::NoContainer {
            place: blobs.place(),
            container: azure.container.clone().unwrap_or_default(),
            account: azure.account.clone().unwrap_or_else(|| "ACCOUNT".to_owned()),
        });
    }
    if blobs.create_container().await? {
        tracing::info!(images = blobs.place(), "the container was made");
    }
    Ok(())
}

/// Asks again while a store is away, until [`PATIENCE`] is used up.
async fn patiently<T, F, Fut>(edges: &Edges, mut attempt: F) -> Result<T, StartError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, StartError>>,
{
    let until = edges.clock.now().plus(PATIENCE);
    let mut wait = WAIT_FIRST;
    loop {
        match attempt().await {
            Err(error) if error.is_transient() && edges.clock.now().plus(wait) < until => {
                tracing::warn!(%error, again_in = ?wait, "not started yet");
            }
            ended => return ended,
        }
        edges.timer.sleep(edges.entropy.jittered(wait)).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, pin::Pin};

    use leasehold_testkit::ManualClock;
    use leasehold_types::{Clock as _, Entropy, Timer};

    use super::*;

    /// Sleeping is time that passes.
    #[derive(Debug)]
    struct Sleeps(ManualClock);

    impl Timer for Sleeps {
        fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
            self.0.advance(wait);
            Box::pin(std::future::ready(()))
        }
    }

    fn edges() -> (Edges, ManualClock) {
        let clock = ManualClock::new();
        let timer = Arc::new(Sleeps(clock.clone()));
        (
            Edges {
                clock: Arc::new(clock.clone()),
                timer,
                entropy: Arc::new(Entropy::seeded(7)),
                ..Edges::system()
            },
            clock,
        )
    }

    fn away() -> StartError {
        LeaseError::Unavailable { action: "connect".to_owned(), detail: "refused".to_owned() }.into()
    }

    #[tokio::test]
    async fn a_store_that_is_away_is_asked_again_and_not_for_ever() {
        let (edges, clock) = edges();
        let attempts = Cell::new(0);
        let comes_back = || {
            attempts.set(attempts.get() + 1);
            std::future::ready(if attempts.get() < 4 { Err(away()) } else { Ok(()) })
        };
        patiently(&edges, comes_back).await.unwrap();
        assert_eq!(attempts.get(), 4);

        let before = clock.now();
        let error = patiently(&edges, || std::future::ready(Err::<(), _>(away()))).await.unwrap_err();
        assert_eq!(error.code(), leasehold_types::ErrorCode::LeaseStoreUnavailable);
        let took = clock.now().since(before);
        assert!((PATIENCE / 2..=PATIENCE).contains(&took), "{took:?}");
    }

    #[tokio::test]
    async fn what_an_operator_has_to_mend_is_told_at_once() {
        let (edges, clock) = edges();
        let before = clock.now();
        let denied = || {
            let (action, detail) = ("connect".to_owned(), "no password".to_owned());
            std::future::ready(Err::<(), _>(LeaseError::Denied { action, detail }.into()))
        };
        patiently(&edges, denied).await.unwrap_err();
        assert_eq!(clock.now(), before);
    }
}
