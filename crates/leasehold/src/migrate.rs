//! `leasehold migrate`: what the cloud pair needs, made or brought to this build's version.

use leasehold_blob::{AzureStore, BlobError, ContainerReach};
use leasehold_lease::PostgresLeaseStore;
use leasehold_server::{BackendPair, Config, Edges, StartError};
use serde_json::json;

use crate::{cli::MigrateArgs, environment, error::CliError, exit::Exit, output::Output};

pub(crate) async fn migrate(args: MigrateArgs, output: Output) -> Result<Exit, CliError> {
    let MigrateArgs { config, dry_run } = args;
    let config = Config::load(config.as_deref(), environment::variables()).map_err(StartError::from)?;
    let BackendPair::Cloud { postgres, azure } = config.pair().map_err(StartError::from)? else {
        return Err(CliError::NothingToMigrate);
    };
    // Both are checked before either is changed.
    let options = postgres.options().map_err(StartError::from)?;
    let blobs = AzureStore::connect(azure.options(&Edges::system()).map_err(StartError::from)?)?;
    let migration = if dry_run {
        PostgresLeaseStore::rehearse_migration(&options).await?
    } else {
        PostgresLeaseStore::migrate(&options).await?
    };
    let is_missing = match blobs.reach(&"_start/".parse().map_err(BlobError::from)?).await? {
        ContainerReach::Open => false,
        ContainerReach::Missing => true,
        ContainerReach::Refused { status, code } => {
            return Err(StartError::ContainerRefused { place: blobs.place(), status, code }.into());
        }
    };
    if is_missing && !dry_run {
        blobs.create_container().await?;
    }
    let (place, images, schema) = (options.place(), blobs.place(), &options.schema);
    let document = json!({
        "dry_run": dry_run,
        "leases": { "place": place, "schema": schema, "from": migration.from, "to": migration.to, "applied": migration.applied },
        "images": { "place": images, "created": is_missing },
    });
    output.show(&document, |out| {
        let (from, to) = (migration.from, migration.to);
        if migration.applied.is_empty() {
            writeln!(out, "leases in {place}: schema {schema} is at version {to}, nothing is to do")?;
        } else {
            let did = if dry_run { "would go" } else { "went" };
            let steps = migration.applied.join(", ");
            writeln!(out, "leases in {place}: schema {schema} {did} from version {from} to {to} ({steps})")?;
        }
        let found = match (is_missing, dry_run) {
            (false, _) => "the container is there",
            (true, false) => "the container was made",
            (true, true) => "the container would be made",
        };
        writeln!(out, "images in {images}: {found}")
    })?;
    Ok(Exit::Done)
}
