//! A `PgBouncer` in transaction mode before the suites' Postgres.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use crate::{
    Postgres, Server, ServiceError,
    place::{self, Place},
    programs,
};

const PROGRAM: &str = "pgbouncer";

/// A `PgBouncer` in transaction mode. Where it is found, its superuser is Postgres's.
#[derive(Debug)]
pub struct PgBouncer {
    server: Server,
    port: u16,
}

/// The system's, if it has one.
pub(crate) fn of_the_system() -> Option<PathBuf> {
    programs::find(PROGRAM)
}

/// The system's, installed where there is none and this program may do that.
pub(crate) fn installed(place: &Place) -> Result<PathBuf, ServiceError> {
    if let Some(program) = of_the_system() {
        return Ok(program);
    }
    let (true, Some(apt)) = (place.runs_as_another(), programs::find("apt-get")) else {
        return Err(ServiceError::NoPgBouncer { source: None });
    };
    println!("PgBouncer is missing: installing the system's package");
    let failed = |why| ServiceError::NoPgBouncer { source: Some(Box::new(why)) };
    let log = place.log("apt-get");
    let install = || apt_get(&apt, &["install", "--yes", "--no-install-recommends", PROGRAM], &log);
    // A fresh machine has no list of packages, and an old list names what is not there any more.
    install().or_else(|_| apt_get(&apt, &["update"], &log).and_then(|()| install())).map_err(failed)?;
    of_the_system().ok_or(ServiceError::NoPgBouncer { source: None })
}

fn apt_get(apt: &Path, arguments: &[&str], log: &Path) -> Result<(), ServiceError> {
    let output = File::create(log).map_err(ServiceError::at(log))?;
    let errors = output.try_clone().map_err(ServiceError::at(log))?;
    let mut command = Command::new(apt);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    place::run(command, "apt-get", log)
}

impl PgBouncer {
    /// Starts one before `postgres`.
    pub(crate) fn start(
        program: &Path,
        place: &Arc<Place>,
        postgres: &Postgres,
    ) -> Result<Self, ServiceError> {
        let (user, password) = postgres.superuser();
        let users = place.file("pgbouncer-users", &format!("\"{user}\" \"{password}\"\n"))?;
        let port = place::free_port()?;
        // No `ignore_startup_parameters`: a client that sends what a pooler cannot keep is to be found.
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 20\nmax_client_conn = 1000\n",
            postgres.addr().port(),
            users.display(),
        );
        let configuration = place.file("pgbouncer.ini", &configuration)?;
        let mut command = place.command(program, PROGRAM)?;
        command.arg(configuration);
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = Server::start(PROGRAM, command, place, move |_| TcpStream::connect(addr).is_ok())?;
        Ok(Self { server, port })
    }

    /// The process.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// The process, for whoever keeps it until its end.
    pub(crate) fn into_server(self) -> Server {
        self.server
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}
