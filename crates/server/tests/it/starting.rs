//! How a replica comes up, or does not.

use std::{path::Path, time::Duration};

use leasehold_lease::{Announced, Announcement};
use leasehold_server::{
    AzureSettings, Config, Edges, PostgresSettings, ServeError, Service, StartError, Stores, bind,
};
use leasehold_types::ErrorCode;
use tokio::sync::mpsc;

use crate::served::{Served, config_in};

async fn refusal(config: Config) -> StartError {
    Service::build(config).await.map(|service| service.replica().clone()).unwrap_err()
}

#[tokio::test]
async fn one_replica_id_has_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let named = || Config { replica: Some("a".parse().unwrap()), ..config_in(dir.path()) };
    let one = Served::start(named()).await;
    let error = refusal(named()).await;
    assert_eq!(error.code(), ErrorCode::ReplicaIdTaken);
    assert!(error.to_string().contains("replica a"), "{error}");
    one.append("acme/user-1", "a").await;
    one.stop().await.unwrap();
    Served::start(named()).await.append("acme/user-1", "b").await;
}

/// Replica `a` of a fleet whose machines share no disk, on `stores` that are handed in: those that the configuration names are never asked.
fn on_shared_stores(machine: &Path, key: &Path) -> Config {
    Config {
        replica: Some("a".parse().unwrap()),
        derivation_key_file: Some(key.to_owned()),
        postgres: Some(PostgresSettings {
            url: Some("postgres://db/main".into()),
            ..PostgresSettings::default()
        }),
        azure: Some(AzureSettings {
            container: Some("images".to_owned()),
            connection_string: Some("UseDevelopmentStorage=true".into()),
            ..AzureSettings::default()
        }),
        dev: false,
        ..config_in(machine)
    }
}

#[tokio::test]
async fn one_replica_id_has_one_process_on_machines_that_share_no_disk() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    let stores = Stores::embedded(&config_in(&dir.path().join("shared")), &Edges::system()).unwrap();
    let config = |machine: &str| on_shared_stores(&dir.path().join(machine), &key);

    let ttl = Duration::from_secs(5);
    let one = Served::start_on(Config { ttl, ..config("one") }, stores.clone()).await;
    let other = Config { ttl, ..config("other") };
    let listener = bind(&other).await.unwrap();
    let service = Service::build_with(other, Edges::system(), stores.clone()).await.unwrap();
    let (_tell, told) = mpsc::channel(1);
    let ended = service.run(listener, told).await.unwrap_err();
    let ServeError::Start(error) = &ended else { panic!("{ended}") };
    assert!(matches!(**error, StartError::ReplicaIdTaken { endpoint: Some(_), .. }), "{error}");
    assert!(error.to_string().contains(&one.url), "{error}");
    one.append("acme/user-1", "a").await;
    one.stop().await.unwrap();

    // One that was killed is heard of no more: its id is free after a ttl.
    let killed = Announcement {
        replica: "a".parse().unwrap(),
        instance: uuid::Uuid::from_u128(7),
        endpoint: None,
        draining: false,
        open_tenants: 0,
    };
    let ttl = Duration::from_secs(1);
    assert_eq!(stores.leases.announce(&killed, ttl, false).await.unwrap(), Announced::Accepted);
    let next = Config { ttl, margin: ttl / 5, ..config("next") };
    Served::start_on(next, stores).await.append("acme/user-1", "b").await;
}

#[tokio::test]
async fn what_a_fleet_shares_is_not_made_by_one_of_its_replicas() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Stores::embedded(&config_in(dir.path()), &Edges::system()).unwrap();
    let key = dir.path().join("key");
    let config = on_shared_stores(dir.path(), &key);
    let error = Service::build_with(config.clone(), Edges::system(), stores.clone()).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidConfiguration);
    let said = error.to_string();
    assert!(said.contains("`derivation_key_file`") && said.contains(&*key.to_string_lossy()), "{said}");
    assert!(!key.exists());
    let config = Config { derivation_key_file: None, ..config };
    let error = Service::build_with(config, Edges::system(), stores).await.err().unwrap();
    assert!(error.to_string().contains("`derivation_key_file`"), "{error}");
}

#[tokio::test]
async fn another_derivation_key_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    Served::start(config_in(dir.path())).await.stop().await.unwrap();
    let path = dir.path().join("derivation.key");
    let text = std::fs::read_to_string(&path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    std::fs::write(&path, "ab".repeat(32)).unwrap();
    let error = refusal(config_in(dir.path())).await;
    assert!(matches!(error, StartError::OtherDerivationKey { .. }), "{error}");
    assert!(!error.to_string().contains(text.trim()), "a key is never shown");
    std::fs::write(&path, "no key").unwrap();
    assert!(matches!(refusal(config_in(dir.path())).await, StartError::InvalidDerivationKey { .. }));
    std::fs::write(&path, text).unwrap();
    assert!(Service::build(config_in(dir.path())).await.is_ok());
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_written_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = refusal(config_in(&file.path().join("data"))).await;
    assert_eq!(error.code(), ErrorCode::LocalIo);
    assert!(error.to_string().contains(&*file.path().to_string_lossy()), "{error}");
}

#[tokio::test]
async fn a_configuration_is_checked_however_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { listen: Some("0.0.0.0:0".parse().unwrap()), ..config_in(dir.path()) };
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let error = Service::build_with(config, Edges::system(), stores).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidConfiguration);
}

#[tokio::test]
async fn the_memory_of_sql_is_bounded_before_anything_is_served() {
    let dir = tempfile::tempdir().unwrap();
    Service::build(config_in(dir.path())).await.unwrap();
    let bytes = leasehold_ledger::memory_limit().unwrap();
    assert!(bytes >= 64 << 20, "{bytes}");
}

#[tokio::test]
async fn a_named_port_is_not_exchanged_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let first = bind(&config_in(dir.path())).await.unwrap();
    let taken = Config { listen: Some(first.clients.local_addr().unwrap()), ..config_in(dir.path()) };
    assert!(matches!(bind(&taken).await, Err(StartError::Listen { .. })));
    // Nobody named one: whichever is free from the default on, for both.
    let unnamed = Config { listen: None, ..config_in(dir.path()) };
    let (one, other) = (bind(&unnamed).await.unwrap(), bind(&unnamed).await.unwrap());
    assert_ne!(one.clients.local_addr().unwrap(), other.clients.local_addr().unwrap());
}
