//! A Postgres of the suites' own.

use std::{
    fmt, fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use crate::{
    Server, ServiceError,
    packages::Packages,
    place::{self, Place},
    programs,
};

/// Where systems put Postgres beside the path.
const PLACES: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/pgsql"];

/// What its superuser is called.
const SUPERUSER: &str = "postgres";

/// What its commits are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// They outlive a power cut.
    AsDeployed,
    /// They outlive the server, not the machine: for what is about order and fencing.
    Fast,
}

/// A Postgres, empty when it is started first.
pub struct Postgres {
    server: Server,
    port: u16,
    password: String,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("server", &self.server)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// The directory with the system's `postgres` and `initdb`, if it has them.
pub(crate) fn of_the_system() -> Option<PathBuf> {
    let versions = PLACES.into_iter().flat_map(|place| programs::newest_first(Path::new(place)));
    let beside = versions.flat_map(|version| [version.join("bin"), version]);
    programs::directories().chain(beside).find_map(|directory| {
        // Postgres finds its files from where it really lies.
        let program = fs::canonicalize(directory.join("postgres")).ok()?;
        let programs = program.parent()?.to_path_buf();
        (program.is_file() && programs.join("initdb").is_file()).then_some(programs)
    })
}

/// The same from npm. Where another user runs it, a copy that this user can reach.
pub(crate) fn of(packages: &Packages, place: &Place) -> Result<PathBuf, ServiceError> {
    let native = packages.postgres().ok_or(ServiceError::NoPostgres)?.join("native");
    if !place.runs_as_another() {
        return Ok(native.join("bin"));
    }
    let copy = place.data().join("postgres-programs");
    let log = place.log("copy");
    let mut command = Command::new("cp");
    command.arg("-R").arg(&native).arg(&copy);
    place::run(command, "cp", &log)?;
    Ok(copy.join("bin"))
}

impl Postgres {
    /// Makes a database cluster and starts a server over it.
    pub(crate) fn start(
        programs: &Path,
        place: &Arc<Place>,
        durability: Durability,
    ) -> Result<Self, ServiceError> {
        let password = place::secret()?;
        let password_file = place.file("postgres-password", &password)?;
        let data = place.directory("postgres")?;
        let mut initdb = place.command(&programs.join("initdb"), "initdb")?;
        initdb
            .args([
                "--username",
                SUPERUSER,
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .arg("--pwfile")
            .arg(&password_file)
            .arg("-D")
            .arg(&data);
        place::run(initdb, "initdb", &place.log("initdb"))?;

        let port = place::free_port()?;
        let mut command = place.command(&programs.join("postgres"), "postgres")?;
        command.arg("-D").arg(&data).arg("-p").arg(port.to_string());
        let fsync = if durability == Durability::AsDeployed { "fsync=on" } else { "fsync=off" };
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            fsync,
            "max_connections=400",
            "log_line_prefix=%m [%p] %a ",
        ] {
            command.args(["-c", setting]);
        }
        let status = data.join("postmaster.pid");
        let server = Server::start("postgres", command, place, move |pid| {
            fs::read_to_string(&status).is_ok_and(|text| is_ready(&text, pid))
        })?;
        Ok(Self { server, port, password })
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

    /// Where its superuser finds it.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// Its superuser and the password of that.
    pub(crate) fn superuser(&self) -> (&str, &str) {
        (SUPERUSER, &self.password)
    }

    /// Where its superuser finds what stands before it at `addr`.
    #[must_use]
    pub fn url_at(&self, addr: SocketAddr) -> String {
        format!("postgres://{SUPERUSER}:{}@{addr}/postgres", self.password)
    }
}

/// Whether `postmaster.pid` says that the process `pid` is ready: its first line says whose it is, the eighth how far the start has come. A
/// server that was killed leaves its own behind.
fn is_ready(status: &str, pid: u32) -> bool {
    let mut lines = status.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_itself_says_that_it_is_ready() {
        let status = |last| format!("71\n/data\n1790000000\n5432\n\n127.0.0.1\n  131 0\n{last}\n");
        assert!(is_ready(&status("ready   "), 71));
        assert!(!is_ready(&status("starting"), 71));
        assert!(!is_ready(&status("ready   "), 72), "a killed server's file is still there");
        assert!(!is_ready("71\n", 71));
    }
}
