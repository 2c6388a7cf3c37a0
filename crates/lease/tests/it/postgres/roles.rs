//! The role that serves: exactly the grants of `sql/README.md`, and no more.

use std::time::Duration;

use leasehold_lease::{
    Announcement, Claim, LeaseError, LeaseStore as _, PostgresLeaseStore, Renewal, TokenStore as _,
};
use uuid::Uuid;

use super::server::{Schema, Way, connect, url};
use crate::stage::{TTL, key, tenure_id};

const README: &str = include_str!("../../../../../sql/README.md");
pub(super) const PASSWORD: &str = "correct-horse";

/// A login role of the test's own, gone with it.
pub(super) struct Role {
    pub(super) name: String,
    pub(super) schema: Schema,
}

impl Role {
    pub(super) async fn new(schema: Schema) -> Self {
        let name = format!("{}_app", schema.name());
        schema.admin.batch_execute(&format!("DROP ROLE IF EXISTS {name}")).await.unwrap();
        schema.admin.batch_execute(&format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")).await.unwrap();
        Self { name, schema }
    }

    /// The grants that the document tells an operator to make, for this role and schema.
    pub(super) async fn grant_as_documented(&self) {
        let grants: Vec<&str> = README.lines().filter(|line| line.starts_with("GRANT ")).collect();
        assert!(grants.len() >= 5, "{grants:?}");
        for grant in grants {
            let grant = grant
                .replace("leasehold_app", &self.name)
                .replace("SCHEMA leasehold ", &format!("SCHEMA {} ", self.schema.name()))
                .replace(" leasehold.", &format!(" {}.", self.schema.name()));
            self.schema.admin.batch_execute(&grant).await.unwrap();
        }
    }

    pub(super) fn url(&self) -> String {
        let (_, place) = url(Way::Direct).split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        format!("postgres://{}:{PASSWORD}@{place}", self.name)
    }

    pub(super) fn options(&self, password: &str) -> leasehold_lease::PostgresOptions {
        let mut options = leasehold_lease::PostgresOptions::new(self.url().replace(PASSWORD, password));
        options.schema = self.schema.name().into();
        options
    }

    pub(super) async fn end(self) {
        let sql = format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name);
        self.schema.admin.batch_execute(&sql).await.unwrap();
    }
}

#[tokio::test]
async fn the_documented_grants_are_enough_for_every_call() {
    let role = Role::new(Schema::made(Way::Direct).await).await;
    role.grant_as_documented().await;
    let store = PostgresLeaseStore::connect(role.options(PASSWORD)).await.unwrap();
    let replica: leasehold_types::ReplicaId = "a".parse().unwrap();
    let (lease_key, tenure) = (key("acme/t"), tenure_id(1));
    store.acquire(&lease_key, &replica, tenure, TTL).await.unwrap();
    let row = store.read(&lease_key).await.unwrap().unwrap();
    let claim = Claim { key: lease_key.clone(), replica: replica.clone(), tenure, epoch: row.epoch };
    assert_eq!(store.renew(std::slice::from_ref(&claim), TTL).await.unwrap(), [Renewal::Granted]);
    let epoch = store.advance_epoch(&claim, claim.epoch).await.unwrap().unwrap();
    let claim = Claim { epoch, ..claim };
    store.raise_floor(&claim, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(store.pause(&lease_key).await.unwrap(), Some(true));
    assert!(store.resume(&lease_key).await.unwrap());
    assert!(store.store_receipt(&claim, "{}").await.unwrap());
    let due = store.due_rechecks(1).await.unwrap().pop().unwrap();
    assert!(store.schedule_recheck(&due, None).await.unwrap());
    assert_eq!(store.list(lease_key.org(), None, 10).await.unwrap().len(), 1);
    assert!(store.release(&claim).await.unwrap());
    let said = Announcement {
        replica: replica.clone(),
        instance: Uuid::from_u128(1),
        endpoint: None,
        draining: false,
        open_tenants: 0,
    };
    store.announce(&said, TTL, false).await.unwrap();
    assert_eq!(store.replicas().await.unwrap().len(), 1);
    store.retire(&replica, said.instance).await.unwrap();
    assert_eq!(store.bind_derivation_key("f").await.unwrap(), "f");
    assert_eq!(store.tokens().await.unwrap(), []);

    assert!(
        PostgresLeaseStore::migrate(&role.options(PASSWORD)).await.unwrap().applied.is_empty(),
        "nothing to do"
    );
    role.end().await;
}

#[tokio::test]
async fn the_documented_grants_are_no_more_than_that() {
    let role = Role::new(Schema::made(Way::Direct).await).await;
    role.grant_as_documented().await;
    role.schema.run("INSERT INTO @.lease (lease_key, epoch) VALUES ('acme/t', 7)").await;
    let client = connect(&role.url()).await;
    for sql in [
        "DELETE FROM @.lease",
        "TRUNCATE @.lease",
        "DROP TABLE @.lease",
        "ALTER TABLE @.lease ADD extra int",
        "CREATE TABLE @.extra (a int)",
        "UPDATE @.settings SET value = 'other'",
        "DELETE FROM @.settings",
        "DELETE FROM @.schema_history",
        "INSERT INTO @.token VALUES ('crm', 1, 'a', '', '*', 'admin', now(), now())",
        "UPDATE @.token SET scopes = 'admin'",
        "DELETE FROM @.token",
        "DROP SCHEMA @ CASCADE",
    ] {
        let error = client.batch_execute(&sql.replace('@', role.schema.name())).await.unwrap_err();
        let code = error.code().unwrap();
        assert_eq!(*code, tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE, "{sql}");
    }
    role.end().await;
}

#[tokio::test]
async fn an_administrators_schema_is_filled_by_its_owner() {
    let role = Role::new(Schema::unmade(Way::Direct).await).await;
    let error = PostgresLeaseStore::migrate(&role.options(PASSWORD)).await.unwrap_err();
    assert!(matches!(error, LeaseError::Denied { .. }), "it may not make a schema: {error:?}");
    role.schema.run(&format!("CREATE SCHEMA @ AUTHORIZATION {}", role.name)).await;
    assert_eq!(PostgresLeaseStore::migrate(&role.options(PASSWORD)).await.unwrap().applied.len(), 3);
    PostgresLeaseStore::connect(role.options(PASSWORD)).await.unwrap();
    role.end().await;
}

#[tokio::test]
async fn what_the_server_does_not_allow_is_told_without_the_secret() {
    let role = Role::new(Schema::made(Way::Direct).await).await;
    let no_grant = PostgresLeaseStore::connect(role.options(PASSWORD)).await.unwrap_err();
    let no_password = PostgresLeaseStore::connect(role.options("battery-staple")).await.unwrap_err();
    let mut elsewhere = leasehold_lease::PostgresOptions::new(role.url().replace("/postgres", "/nowhere"));
    elsewhere.schema = role.schema.name().into();
    let no_database = PostgresLeaseStore::connect(elsewhere).await.unwrap_err();
    for error in [no_grant, no_password, no_database] {
        assert!(matches!(error, LeaseError::Denied { .. }), "{error:?}");
        assert!(!error.is_transient() && error.code().as_str() == "invalid_configuration");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(PASSWORD) && !shown.contains("battery-staple"), "{shown}");
    }
    role.end().await;
}
