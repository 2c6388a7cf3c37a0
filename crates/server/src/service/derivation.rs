//! The derivation key: made once, kept in a file, bound to the lease store.
//!
//! A machine that keeps everything makes its key at the first start. What many machines share is given to each of them.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use leasehold_lease::LeaseStore;
use leasehold_types::{DerivationKey, Entropy};

use crate::StartError;

/// The key in `path`, which is the one that `leases` was bound to. Where there is none it is made of `maker`, if there is one.
pub(crate) async fn derivation_key(
    path: &Path,
    maker: Option<&Entropy>,
    leases: &dyn LeaseStore,
) -> Result<DerivationKey, StartError> {
    let key = match (read(path)?, maker) {
        (Some(key), _) => key,
        (None, Some(entropy)) => make(path, entropy)?,
        (None, None) => return Err(StartError::NoDerivationKey { path: path.to_owned() }),
    };
    let found = key.fingerprint();
    let kept = leases.bind_derivation_key(&found).await?;
    if kept != found {
        return Err(StartError::OtherDerivationKey { found, kept, path: path.to_owned() });
    }
    Ok(key)
}

fn read(path: &Path) -> Result<Option<DerivationKey>, StartError> {
    match std::fs::read_to_string(path) {
        Ok(text) => DerivationKey::from_hex(&text)
            .map(Some)
            .map_err(|_| StartError::InvalidDerivationKey { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(StartError::InvalidDerivationKey { path: path.to_owned() })
        }
        Err(source) => Err(StartError::Local { action: "read", path: path.to_owned(), source }),
    }
}

/// Writes a fresh key, whole or not at all, and takes the other one where another process was faster.
fn make(path: &Path, entropy: &Entropy) -> Result<DerivationKey, StartError> {
    let bytes = entropy.key_bytes();
    let mut beside: PathBuf = path.to_owned();
    beside.set_extension(format!("key.{}", entropy.uuid()));
    let written = write_new(&beside, &bytes).and_then(|()| match std::fs::hard_link(&beside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    // The name beside it was only the way there.
    let _ = std::fs::remove_file(&beside);
    written.map_err(|source| StartError::Local { action: "write", path: path.to_owned(), source })?;
    read(path)?.ok_or_else(|| StartError::InvalidDerivationKey { path: path.to_owned() })
}

fn write_new(path: &Path, key: &[u8; 32]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{}", hex::encode(key))?;
    file.sync_all()
}
