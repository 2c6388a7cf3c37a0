//! A Postgres of the suites' own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    error::ServiceError,
    packages::Packages,
    place::{self, Place},
    programs,
    server::Server,
};

/// Where systems put Postgres beside the path.
const PLACES: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/pgsql"];

/// What its superuser is called.
const SUPERUSER: &str = "postgres";

/// A running Postgres, empty when it starts.
#[derive(Debug)]
pub(crate) struct Postgres {
    pub(super) server: Server,
    pub(super) port: u16,
    password: String,
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
    pub(crate) fn start(programs: &Path, place: &Place) -> Result<Self, ServiceError> {
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
        // What these suites check is order and fencing; that a commit outlives a power cut is Postgres's own suite's.
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "max_connections=400",
            "log_line_prefix=%m [%p] %a ",
        ] {
            command.args(["-c", setting]);
        }
        let mut server = Server::start("postgres", command, place)?;
        let status = data.join("postmaster.pid");
        // The eighth line of that file says how far the start has come.
        server.until(|| {
            fs::read_to_string(&status)
                .is_ok_and(|text| text.lines().nth(7).is_some_and(|line| line.trim() == "ready"))
        })?;
        Ok(Self { server, port, password })
    }

    /// Its superuser and the password of that.
    pub(crate) fn superuser(&self) -> (&str, &str) {
        (SUPERUSER, &self.password)
    }

    /// Where its superuser finds it, or what stands before it on `port`.
    pub(crate) fn url_at(&self, port: u16) -> String {
        format!("postgres://{SUPERUSER}:{}@127.0.0.1:{port}/postgres", self.password)
    }
}
