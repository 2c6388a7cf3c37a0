//! The contract over Postgres.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use leasehold_types::{Epoch, Floor, LeaseKey, OrgSlug, ReplicaId, TenantId, TenureId, TokenId};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{
    connections::{Connections, Lent},
    leases,
    migrations::{self, Ending, Migration},
    options::PostgresOptions,
    renewal, replicas, rows,
    statements::Statements,
    tokens,
};
use crate::{
    Acquisition, Announced, Announcement, Claim, LeaseError, LeaseRow, LeaseStore, NewToken, Recheck,
    Renewal, ReplicaRow, TokenAdded, TokenRow, TokenStore,
};

/// A lease store in a schema of a Postgres database, shared by a fleet. Its clock is the database's.
///
/// It asks nothing of a session, so it works through a pooler that gives each transaction another one (PgBouncer's
/// `pool_mode = transaction`). Its role needs no more than the grants in `sql/README.md`.
#[derive(Clone)]
pub struct PostgresLeaseStore {
    connections: Connections,
    statements: Arc<Statements>,
    /// The schema and where it is, for people.
    place: String,
}

impl PostgresLeaseStore {
    /// Connects, and sees that the tables are there in the version that this build needs. Changes nothing.
    pub async fn connect(options: PostgresOptions) -> Result<Self, LeaseError> {
        let store = Self {
            connections: Connections::new(&options)?,
            statements: Arc::new(Statements::new(&options.schema)),
            place: format!("{} in schema {}", options.place(), options.schema),
        };
        store.check_version(&options.schema).await?;
        Ok(store)
    }

    /// Makes the schema and its tables, or brings them to the version that this build needs. Safe while other replicas do the same.
    ///
    /// Where something is to be made, the role needs `CREATE` on the schema, and on the database where the schema is missing.
    pub async fn migrate(options: &PostgresOptions) -> Result<Migration, LeaseError> {
        migrations::migrate(options, Ending::Commit).await
    }

    /// Does the same and takes it back, so that what stands in its way is found: the steps that it answers are left to do.
    pub async fn rehearse_migration(options: &PostgresOptions) -> Result<Migration, LeaseError> {
        migrations::migrate(options, Ending::TakeBack).await
    }

    /// Every statement that this store may run, by its name: for whoever looks for them in the server's own statistics or log. A migration
    /// is made of other ones.
    #[must_use]
    pub fn statements(&self) -> Vec<(&'static str, &str)> {
        self.statements.all()
    }

    async fn check_version(&self, schema: &str) -> Result<(), LeaseError> {
        let mut lent = self.lend("connect").await?;
        let tables = lent.read("connect", &self.statements.has_history, &[(&schema, Type::TEXT)]).await?;
        let is_there = tables.first().map(|row| rows::column::<bool>(row, 0)).transpose()?;
        let found = if is_there == Some(true) {
            let rows = lent.read("connect", &self.statements.version, &[]).await?;
            let version = rows.first().map(|row| rows::column::<i32>(row, 0)).transpose()?;
            version.and_then(|version| u32::try_from(version).ok()).unwrap_or(0)
        } else {
            0
        };
        let needed = migrations::VERSION;
        match found {
            found if found > needed => Err(LeaseError::FormatTooNew { found, known: needed }),
            found if found < needed => Err(LeaseError::Unmigrated { schema: schema.into(), found, needed }),
            _ => Ok(()),
        }
    }

    async fn lend(&self, action: &str) -> Result<Lent, LeaseError> {
        self.connections.for_call(action).await
    }
}

impl fmt::Debug for PostgresLeaseStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresLeaseStore").field(&self.place).finish()
    }
}

#[async_trait]
impl LeaseStore for PostgresLeaseStore {
    async fn acquire(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        let mut lent = self.lend(&format!("acquire {key} for {replica}")).await?;
        leases::acquire(&mut lent, &self.statements, key, replica, tenure, ttl, false).await
    }

    async fn acquire_to_forget(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        let mut lent = self.lend(&format!("acquire {key} for {replica}")).await?;
        leases::acquire(&mut lent, &self.statements, key, replica, tenure, ttl, true).await
    }

    async fn pause(&self, key: &LeaseKey) -> Result<Option<bool>, LeaseError> {
        let mut lent = self.lend(&format!("pause {key}")).await?;
        leases::pause(&mut lent, &self.statements, key).await
    }

    async fn resume(&self, key: &LeaseKey) -> Result<bool, LeaseError> {
        let mut lent = self.lend(&format!("resume {key}")).await?;
        leases::resume(&mut lent, &self.statements, key).await
    }

    async fn renew(&self, claims: &[Claim], ttl: Duration) -> Result<Vec<Renewal>, LeaseError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let mut lent = self.connections.for_renewal(&renewal::action(claims)).await?;
        renewal::renew(&mut lent, &self.statements, claims, ttl).await
    }

    async fn release(&self, claim: &Claim) -> Result<bool, LeaseError> {
        let mut lent = self.lend(&leases::act("release", claim)).await?;
        leases::release(&mut lent, &self.statements, claim).await
    }

    async fn raise_floor(&self, claim: &Claim, recheck_after: Duration) -> Result<Option<Floor>, LeaseError> {
        let mut lent = self.lend(&leases::act("raise the floor of", claim)).await?;
        leases::raise_floor(&mut lent, &self.statements, claim, recheck_after).await
    }

    async fn store_receipt(&self, claim: &Claim, receipt: &str) -> Result<bool, LeaseError> {
        let mut lent = self.lend(&leases::act("store the receipt of", claim)).await?;
        leases::store_receipt(&mut lent, &self.statements, claim, receipt).await
    }

    async fn advance_epoch(&self, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, LeaseError> {
        let mut lent = self.lend(&leases::act("advance", claim)).await?;
        leases::advance_epoch(&mut lent, &self.statements, claim, beyond).await
    }

    async fn read(&self, key: &LeaseKey) -> Result<Option<LeaseRow>, LeaseError> {
        let mut lent = self.lend(&format!("read {key}")).await?;
        leases::read(&mut lent, &self.statements, key).await
    }

    async fn list(
        &self,
        org: &OrgSlug,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<LeaseRow>, LeaseError> {
        let mut lent = self.lend(&format!("list {org}")).await?;
        leases::list(&mut lent, &self.statements, org, after, limit).await
    }

    async fn due_rechecks(&self, limit: u32) -> Result<Vec<Recheck>, LeaseError> {
        let mut lent = self.lend("list due rechecks").await?;
        leases::due_rechecks(&mut lent, &self.statements, limit).await
    }

    async fn schedule_recheck(&self, recheck: &Recheck, next: Option<Duration>) -> Result<bool, LeaseError> {
        let mut lent = self.lend(&format!("schedule the recheck of {}", recheck.key)).await?;
        leases::schedule_recheck(&mut lent, &self.statements, recheck, next).await
    }

    async fn announce(
        &self,
        announcement: &Announcement,
        alive: Duration,
        supersede: bool,
    ) -> Result<Announced, LeaseError> {
        let mut lent = self.lend(&format!("announce {}", announcement.replica)).await?;
        replicas::announce(&mut lent, &self.statements, announcement, alive, supersede).await
    }

    async fn retire(&self, replica: &ReplicaId, instance: Uuid) -> Result<(), LeaseError> {
        let mut lent = self.lend(&format!("retire {replica}")).await?;
        replicas::retire(&mut lent, &self.statements, replica, instance).await
    }

    async fn replicas(&self) -> Result<Vec<ReplicaRow>, LeaseError> {
        let mut lent = self.lend("list replicas").await?;
        replicas::list(&mut lent, &self.statements).await
    }

    async fn bind_derivation_key(&self, fingerprint: &str) -> Result<String, LeaseError> {
        let mut lent = self.lend("bind the derivation key").await?;
        replicas::bind_derivation_key(&mut lent, &self.statements, fingerprint).await
    }
}

#[async_trait]
impl TokenStore for PostgresLeaseStore {
    async fn add_token(&self, token: &NewToken) -> Result<TokenAdded, LeaseError> {
        let mut lent = self.lend(&format!("add the token {}", token.id)).await?;
        tokens::add(&mut lent, &self.statements, token).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>, LeaseError> {
        let mut lent = self.lend("list the tokens").await?;
        tokens::list(&mut lent, &self.statements).await
    }

    async fn revoke_token(&self, id: &TokenId) -> Result<bool, LeaseError> {
        let mut lent = self.lend(&format!("revoke the token {id}")).await?;
        tokens::revoke(&mut lent, &self.statements, id).await
    }
}
