//! The servers of one test.

use std::{fmt, sync::Arc};

use crate::{
    Azurite, Home, PgBouncer, Postgres, ServiceError,
    azurite::Persistence,
    packages::Packages,
    pgbouncer,
    place::Place,
    postgres::{self, Durability},
};

/// Starts servers that one test has to itself, and so may stop, kill and pause. Each of them ends when it is dropped.
pub struct OwnServers {
    home: Home,
    place: Arc<Place>,
}

impl fmt::Debug for OwnServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnServers").field("logs", &self.place.logs()).finish_non_exhaustive()
    }
}

impl OwnServers {
    /// Those of `test`, a name that no other test uses: their logs stay below `target/services/logs/<test>`.
    pub fn of(test: &str) -> Result<Self, ServiceError> {
        let home = Home::of_this_program()?;
        let place = Arc::new(Place::new(&home.logs().join(test))?);
        Ok(Self { home, place })
    }

    /// A Postgres, empty, as one is deployed: what it has committed outlives it, however it ends.
    pub fn postgres(&self) -> Result<Postgres, ServiceError> {
        let programs = match postgres::of_the_system() {
            Some(programs) => programs,
            None => postgres::of(&Packages::installed(&self.home, true)?, &self.place)?,
        };
        Postgres::start(&programs, &self.place, Durability::AsDeployed)
    }

    /// A `PgBouncer` in transaction mode before `postgres`.
    pub fn pgbouncer(&self, postgres: &Postgres) -> Result<PgBouncer, ServiceError> {
        let program = pgbouncer::of_the_system().ok_or(ServiceError::NoPgBouncer { source: None })?;
        PgBouncer::start(&program, &self.place, postgres)
    }

    /// An Azurite, empty, that keeps its objects over an end and a new start. Before a kill, see
    /// [`Azurite::has_saved`].
    pub fn azurite(&self) -> Result<Azurite, ServiceError> {
        Azurite::start(&Packages::installed(&self.home, false)?, &self.place, Persistence::OnDisk)
    }

    /// One that keeps nothing over its end: for a test that makes thousands of objects and never ends it. Nobody else's
    /// objects are in its way.
    pub fn azurite_in_memory(&self) -> Result<Azurite, ServiceError> {
        Azurite::start(&Packages::installed(&self.home, false)?, &self.place, Persistence::InMemory)
    }
}
