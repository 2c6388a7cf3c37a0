//! Which replica this process is, and the proof that no other process on this data directory is the same one.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::Path,
};

use leasehold_types::ReplicaId;

use crate::{Config, ConfigError, StartError, private_dir};

/// How many ids development mode tries.
const DEV_REPLICAS_MAX: u32 = 64;

/// The lock on `<data dir>/nodes/<replica>/lock`, held as long as the process lives: the system lets go of it however the process
/// ends, so a crash leaves nothing to clean up.
#[derive(Debug)]
pub(crate) struct NodeLock(#[expect(dead_code, reason = "held, never read")] File);

/// Takes the configured replica id, or in development the first one that is free.
pub(crate) fn take_replica(config: &Config) -> Result<(ReplicaId, NodeLock), StartError> {
    if let Some(replica) = &config.replica {
        return match lock(config, &config.node_dir(replica))? {
            Some(lock) => Ok((replica.clone(), lock)),
            None => Err(StartError::ReplicaIdTaken { replica: replica.clone(), endpoint: None }),
        };
    }
    if !config.dev {
        return Err(ConfigError::Unusable {
            key: "replica",
            detail: "it is not set: every replica of a fleet needs an id of its own".to_owned(),
        }
        .into());
    }
    for number in 1..=DEV_REPLICAS_MAX {
        let Ok(replica) = format!("dev-{number}").parse::<ReplicaId>() else { continue };
        if let Some(lock) = lock(config, &config.node_dir(&replica))? {
            return Ok((replica, lock));
        }
    }
    Err(StartError::NoReplicaIdLeft { tried: DEV_REPLICAS_MAX, data_dir: config.data_dir.clone() })
}

/// The lock of a node's directory; `None` while another process has it.
fn lock(config: &Config, node_dir: &Path) -> Result<Option<NodeLock>, StartError> {
    let failed = |action: &'static str, path: &Path, source: io::Error| StartError::Local {
        action,
        path: path.to_owned(),
        source,
    };
    let all = config.nodes_dir();
    private_dir::make_own(&all).map_err(|source| failed("create", &all, source))?;
    private_dir::make(node_dir).map_err(|source| failed("create", node_dir, source))?;
    let path = node_dir.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|source| failed("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(NodeLock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed("lock", &path, source)),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ErrorCode;

    use super::*;

    #[test]
    fn development_takes_the_first_id_that_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::dev(dir.path(), None).unwrap();
        let (first, lock) = take_replica(&config).unwrap();
        let (second, _lock) = take_replica(&config).unwrap();
        assert_eq!((first.as_str(), second.as_str()), ("dev-1", "dev-2"));
        drop(lock);
        assert_eq!(take_replica(&config).unwrap().0.as_str(), "dev-1");
    }

    #[test]
    fn an_id_that_is_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let config =
            Config { replica: Some("a".parse().unwrap()), data_dir: dir.path().into(), ..Config::default() };
        let held = take_replica(&config).unwrap();
        let error = take_replica(&config).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ReplicaIdTaken);
        assert!(error.to_string().contains("replica a"), "{error}");
        drop(held);
        assert!(take_replica(&config).is_ok());
        let error = take_replica(&Config { replica: None, ..config }).unwrap_err();
        assert!(error.to_string().contains("`replica`"), "{error}");
    }

    #[test]
    fn a_data_directory_that_cannot_be_written_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = Config::dev(file.path().join("data"), None).unwrap();
        let error = take_replica(&config).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LocalIo);
        assert!(error.to_string().contains(&*file.path().to_string_lossy()), "{error}");
    }
}
