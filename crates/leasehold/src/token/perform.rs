//! Each verb to its file.

use std::{path::Path, sync::Arc};

use leasehold_lease::{PostgresLeaseStore, SqliteLeaseStore, TokenStore};
use leasehold_server::{BackendPair, Config, Edges, StartError, init_telemetry};

use super::{audit::Operator, create, list, revoke};
use crate::{
    cli::{TokenArgs, TokenVerb},
    environment,
    error::CliError,
    exit::Exit,
    output::Output,
};

pub(crate) async fn perform(args: TokenArgs, output: Output) -> Result<Exit, CliError> {
    let edges = Edges::system();
    let config = Config::load(args.config.as_deref(), environment::variables()).map_err(StartError::from)?;
    init_telemetry(&config.log).map_err(StartError::from)?;
    let store = open(config, args.data_dir.as_deref(), &edges).await?;
    let operator = Operator::of(args.by);
    match args.verb {
        TokenVerb::Create(args) => {
            create::create(store.as_ref(), &edges.entropy, args, &operator, output).await
        }
        TokenVerb::List => list::list(store.as_ref(), output).await,
        TokenVerb::Revoke(args) => revoke::revoke(store.as_ref(), &args.which, &operator, output).await,
    }?;
    Ok(Exit::Done)
}

/// The store in `data_dir`, or else the one that the configuration names.
async fn open(
    mut config: Config,
    data_dir: Option<&Path>,
    edges: &Edges,
) -> Result<Arc<dyn TokenStore>, CliError> {
    if let Some(data_dir) = data_dir {
        config.data_dir = data_dir.to_owned();
        config.postgres = None;
        config.azure = None;
    }
    match config.pair().map_err(StartError::from)? {
        BackendPair::Embedded => {
            let made = std::fs::create_dir_all(&config.data_dir);
            made.map_err(|source| CliError::Local {
                action: "create",
                path: config.data_dir.clone(),
                source,
            })?;
            Ok(Arc::new(SqliteLeaseStore::open(&config.leases_path(), Arc::clone(&edges.clock))?))
        }
        BackendPair::Cloud { postgres, .. } => {
            let options = postgres.options().map_err(StartError::from)?;
            Ok(Arc::new(PostgresLeaseStore::connect(options).await?))
        }
    }
}
