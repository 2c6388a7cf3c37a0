//! Where the servers of one run keep what they have.

use std::{
    fs::{self, File},
    io::Read as _,
    net::TcpListener,
    ops::Range,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{ServiceError, account::Account};

/// A temporary directory for data, which goes with this; a directory for logs, which stays; and whose they are.
#[derive(Debug)]
pub(crate) struct Place {
    data: TempDir,
    logs: PathBuf,
    account: Option<Account>,
}

impl Place {
    /// A new one, with logs in `logs`.
    pub(crate) fn new(logs: &Path) -> Result<Self, ServiceError> {
        let logs = logs.to_path_buf();
        fs::create_dir_all(&logs).map_err(ServiceError::at(&logs))?;
        let data = tempfile::Builder::new().prefix("leasehold-services-").tempdir();
        let data = data.map_err(ServiceError::at(std::env::temp_dir()))?;
        // The owner of a file just made is who made it.
        let root = fs::metadata(data.path()).map_err(ServiceError::at(data.path()))?.uid() == 0;
        let account = if root {
            Some(Account::without_rights().map_err(ServiceError::at("/etc/passwd"))?)
        } else {
            None
        };
        let place = Self { data, logs, account };
        place.hand_over(place.data.path())?;
        Ok(place)
    }

    /// The directory for data.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Where the logs are.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }

    /// The log of `name`.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    /// Whether the servers run as somebody else, who may not reach this checkout.
    pub(crate) fn runs_as_another(&self) -> bool {
        self.account.is_some()
    }

    /// A new directory of the servers' own.
    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, ServiceError> {
        let directory = self.data.path().join(name);
        fs::create_dir(&directory).map_err(ServiceError::at(&directory))?;
        self.hand_over(&directory)?;
        Ok(directory)
    }

    /// A new file of the servers' own.
    pub(crate) fn file(&self, name: &str, text: &str) -> Result<PathBuf, ServiceError> {
        let file = self.data.path().join(name);
        fs::write(&file, text).map_err(ServiceError::at(&file))?;
        self.hand_over(&file)?;
        Ok(file)
    }

    fn hand_over(&self, path: &Path) -> Result<(), ServiceError> {
        match self.account {
            Some(account) => account.owns(path).map_err(ServiceError::at(path)),
            None => Ok(()),
        }
    }

    /// A command that runs as the servers run, from their directory, and writes to the log of `name`.
    pub(crate) fn command(&self, program: &Path, name: &str) -> Result<Command, ServiceError> {
        let mut command = self.own_command(program, name)?;
        if let Some(account) = self.account {
            account.runs(&mut command);
        }
        Ok(command)
    }

    /// The same, run as this program runs.
    pub(crate) fn own_command(&self, program: &Path, name: &str) -> Result<Command, ServiceError> {
        let log = self.log(name);
        let output = File::create(&log).map_err(ServiceError::at(&log))?;
        let errors = output.try_clone().map_err(ServiceError::at(&log))?;
        let mut command = Command::new(program);
        command.current_dir(self.data.path()).stdin(Stdio::null()).stdout(output).stderr(errors);
        Ok(command)
    }
}

/// Where the system says which ports it gives to clients.
const CLIENT_PORTS: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The lowest port that a server of ours has.
const PORT_MIN: u16 = 10_000;
/// How many ports are tried.
const PORTS_TRIED: u32 = 1_000;

/// A port on loopback that was free a moment ago. None that the system gives to clients: while its server is stopped, a client on its way
/// somewhere else must not be given the port, nor one on its way there meet itself.
pub(crate) fn free_port() -> Result<u16, ServiceError> {
    let ports = fs::read_to_string(CLIENT_PORTS).map_or(PORT_MIN..32_768, |range| ports_below(&range));
    for _ in 0..PORTS_TRIED {
        let port = ports.start + u16::from_le_bytes(random()?) % (ports.end - ports.start);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(ServiceError::NoPort)
}

/// What lies below the system's range, or above it where that leaves too little.
fn ports_below(range: &str) -> Range<u16> {
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u16>().ok());
    match (ends.next(), ends.next()) {
        (Some(low), _) if low > PORT_MIN + 1_000 => PORT_MIN..low,
        (Some(_), Some(high)) if high < u16::MAX - 1_000 => high + 1..u16::MAX,
        _ => PORT_MIN..u16::MAX,
    }
}

fn random<const N: usize>() -> Result<[u8; N], ServiceError> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(ServiceError::at("/dev/urandom"))?;
    Ok(bytes)
}

/// A secret of one run: 48 hexadecimal digits, which are also 36 bytes in base64.
pub(crate) fn secret() -> Result<String, ServiceError> {
    let bytes: [u8; 24] = random()?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// Runs `command` to its end.
pub(crate) fn run(mut command: Command, program: &str, log: &Path) -> Result<(), ServiceError> {
    let status =
        command.status().map_err(|source| ServiceError::Start { program: program.to_owned(), source })?;
    if status.success() {
        Ok(())
    } else {
        Err(ServiceError::Failed { program: program.to_owned(), status, log: log.to_path_buf() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_none_that_a_client_is_given() {
        assert_eq!(ports_below("32768\t60999\n"), PORT_MIN..32_768);
        assert_eq!(ports_below("1024 60999"), 61_000..u16::MAX);
        assert_eq!(ports_below("1024 65535"), PORT_MIN..u16::MAX);
        let port = free_port().unwrap();
        assert!(port >= PORT_MIN && TcpListener::bind(("127.0.0.1", port)).is_ok());
    }
}
