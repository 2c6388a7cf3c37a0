//! The contract over one SQLite file.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use leasehold_types::{Clock, Epoch, Floor, LeaseKey, OrgSlug, ReplicaId, TenantId, TenureId, TokenId};
use rusqlite::Connection;
use tokio::sync::{Mutex, Semaphore};
use uuid::Uuid;

use super::{
    connection, leases, replicas, tokens,
    turn::{Access, Failure, Turn},
};
use crate::{
    Acquisition, Announced, Announcement, Claim, LeaseError, LeaseRow, LeaseStore, NewToken, Recheck,
    Renewal, ReplicaRow, TokenAdded, TokenRow, TokenStore,
};

/// The most calls that wait for the one connection; past it a call is refused at once.
const WAITING_MAX: usize = 4_096;
/// The most claims that are renewed in one transaction, so that no renewal keeps other processes out for long.
const RENEW_CHUNK: usize = 1_000;

/// A lease store in one SQLite file, shared by any number of processes and stores on one machine. The file must lie on a local file
/// system.
///
/// The store's clock is the machine's `CLOCK_BOOTTIME`, which all its processes share; calendar columns come from the calendar. The
/// times belong to one boot of the machine: when a store is opened in another one, every lease has run out.
#[derive(Clone)]
pub struct SqliteLeaseStore {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    /// Handed out in the order of asking, to one blocking thread at a time.
    connection: Arc<Mutex<Connection>>,
    waiting: Arc<Semaphore>,
}

impl SqliteLeaseStore {
    /// Opens the store at `path`, or makes it (its directory must be there). Blocks for a few milliseconds, with other processes at work
    /// for two seconds at the most.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, LeaseError> {
        Self::open_with_boot(path, clock, &connection::boot_id()?)
    }

    /// The same, in the boot of this id instead of the machine's own.
    pub fn open_with_boot(path: &Path, clock: Arc<dyn Clock>, boot: &str) -> Result<Self, LeaseError> {
        let connection = connection::open(path, boot)?;
        Ok(Self {
            path: path.into(),
            clock,
            connection: Arc::new(Mutex::new(connection)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        })
    }

    /// Runs `work` in a turn of its own, away from the runtime's threads. Once begun it runs to its end, whether the caller still waits or
    /// not.
    async fn turn<T: Send + 'static>(
        &self,
        access: Access,
        action: String,
        work: impl FnOnce(&Turn<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, LeaseError> {
        let failed = |detail: String| LeaseError::Unavailable { action: action.clone(), detail };
        let place = Arc::clone(&self.waiting)
            .try_acquire_owned()
            .map_err(|_| failed(format!("{WAITING_MAX} calls wait already")))?;
        let mut connection = Arc::clone(&self.connection).lock_owned().await;
        let clock = Arc::clone(&self.clock);
        let done = tokio::task::spawn_blocking(move || {
            let turn = Turn::begin(&mut connection, &*clock, access)?;
            let answer = work(&turn)?;
            turn.commit()?;
            drop(place);
            Ok(answer)
        });
        match done.await {
            Ok(answer) => answer.map_err(|failure: Failure| failure.while_doing(&action)),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn read_turn<T: Send + 'static>(
        &self,
        action: String,
        work: impl FnOnce(&Turn<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, LeaseError> {
        self.turn(Access::Read, action, work).await
    }

    async fn change<T: Send + 'static>(
        &self,
        action: String,
        work: impl FnOnce(&Turn<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, LeaseError> {
        self.turn(Access::Change, action, work).await
    }
}

impl fmt::Debug for SqliteLeaseStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteLeaseStore").field(&self.path).finish()
    }
}

#[async_trait]
impl LeaseStore for SqliteLeaseStore {
    async fn acquire(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        let (key, replica) = (key.clone(), replica.clone());
        self.change(format!("acquire {key} for {replica}"), move |turn| {
            leases::acquire(turn, &key, &replica, tenure, ttl, false)
        })
        .await
    }

    async fn acquire_to_forget(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        let (key, replica) = (key.clone(), replica.clone());
        self.change(format!("acquire {key} for {replica}"), move |turn| {
            leases::acquire(turn, &key, &replica, tenure, ttl, true)
        })
        .await
    }

    async fn pause(&self, key: &LeaseKey) -> Result<Option<bool>, LeaseError> {
        let key = key.clone();
        self.change(format!("pause {key}"), move |turn| leases::pause(turn, &key)).await
    }

    async fn resume(&self, key: &LeaseKey) -> Result<bool, LeaseError> {
        let key = key.clone();
        self.change(format!("resume {key}"), move |turn| leases::resume(turn, &key)).await
    }

    async fn renew(&self, claims: &[Claim], ttl: Duration) -> Result<Vec<Renewal>, LeaseError> {
        let mut answers = Vec::with_capacity(claims.len());
        for chunk in claims.chunks(RENEW_CHUNK) {
            let action = match chunk {
                [one] => format!("renew {} at epoch {}", one.key, one.epoch),
                many => format!("renew {} leases", many.len()),
            };
            let chunk = chunk.to_vec();
            answers.extend(self.change(action, move |turn| leases::renew(turn, &chunk, ttl)).await?);
        }
        Ok(answers)
    }

    async fn release(&self, claim: &Claim) -> Result<bool, LeaseError> {
        let claim = claim.clone();
        self.change(act("release", &claim), move |turn| leases::release(turn, &claim)).await
    }

    async fn raise_floor(&self, claim: &Claim, recheck_after: Duration) -> Result<Option<Floor>, LeaseError> {
        let claim = claim.clone();
        self.change(act("raise the floor of", &claim), move |turn| {
            leases::raise_floor(turn, &claim, recheck_after)
        })
        .await
    }

    async fn store_receipt(&self, claim: &Claim, receipt: &str) -> Result<bool, LeaseError> {
        let (claim, receipt) = (claim.clone(), receipt.to_owned());
        self.change(act("store the receipt of", &claim), move |turn| {
            leases::store_receipt(turn, &claim, &receipt)
        })
        .await
    }

    async fn advance_epoch(&self, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, LeaseError> {
        let claim = claim.clone();
        self.change(act("advance", &claim), move |turn| leases::advance_epoch(turn, &claim, beyond)).await
    }

    async fn read(&self, key: &LeaseKey) -> Result<Option<LeaseRow>, LeaseError> {
        let key = key.clone();
        self.read_turn(format!("read {key}"), move |turn| leases::read(turn, &key)).await
    }

    async fn list(
        &self,
        org: &OrgSlug,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<LeaseRow>, LeaseError> {
        let (org, after) = (org.clone(), after.cloned());
        self.read_turn(format!("list {org}"), move |turn| leases::list(turn, &org, after.as_ref(), limit))
            .await
    }

    async fn due_rechecks(&self, limit: u32) -> Result<Vec<Recheck>, LeaseError> {
        self.read_turn("list due rechecks".into(), move |turn| leases::due_rechecks(turn, limit)).await
    }

    async fn schedule_recheck(&self, recheck: &Recheck, next: Option<Duration>) -> Result<bool, LeaseError> {
        let recheck = recheck.clone();
        self.change(format!("schedule the recheck of {}", recheck.key), move |turn| {
            leases::schedule_recheck(turn, &recheck, next)
        })
        .await
    }

    async fn announce(
        &self,
        announcement: &Announcement,
        alive: Duration,
        supersede: bool,
    ) -> Result<Announced, LeaseError> {
        let announcement = announcement.clone();
        self.change(format!("announce {}", announcement.replica), move |turn| {
            replicas::announce(turn, &announcement, alive, supersede)
        })
        .await
    }

    async fn retire(&self, replica: &ReplicaId, instance: Uuid) -> Result<(), LeaseError> {
        let replica = replica.clone();
        self.change(format!("retire {replica}"), move |turn| replicas::retire(turn, &replica, instance)).await
    }

    async fn replicas(&self) -> Result<Vec<ReplicaRow>, LeaseError> {
        self.read_turn("list replicas".into(), replicas::list).await
    }

    async fn bind_derivation_key(&self, fingerprint: &str) -> Result<String, LeaseError> {
        let fingerprint = fingerprint.to_owned();
        self.change("bind the derivation key".into(), move |turn| {
            replicas::bind_derivation_key(turn, &fingerprint)
        })
        .await
    }
}

#[async_trait]
impl TokenStore for SqliteLeaseStore {
    async fn add_token(&self, token: &NewToken) -> Result<TokenAdded, LeaseError> {
        let token = token.clone();
        self.change(format!("add the token {}", token.id), move |turn| tokens::add(turn, &token)).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>, LeaseError> {
        self.read_turn("list the tokens".into(), tokens::list).await
    }

    async fn revoke_token(&self, id: &TokenId) -> Result<bool, LeaseError> {
        let id = id.clone();
        self.change(format!("revoke the token {id}"), move |turn| tokens::revoke(turn, &id)).await
    }
}

fn act(verb: &str, claim: &Claim) -> String {
    format!("{verb} {} at epoch {}", claim.key, claim.epoch)
}
