//! The facts of the derivation key's file.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::PathBuf};

use leasehold_types::DerivationKey;

use super::asking::Asking;
use crate::doctor::{
    fact::{Fact, Failure, local},
    facts::{DerivationKeyFacts, KeyFile},
};

pub(super) async fn gather(
    asking: &Asking,
    path: PathBuf,
    bound_to: Fact<Option<String>>,
) -> DerivationKeyFacts {
    let at = path.clone();
    let file = asking.blocking("read the derivation key", move || read(&at)).await;
    DerivationKeyFacts { path, file, bound_to }
}

fn read(path: &std::path::Path) -> Result<KeyFile, Failure> {
    let failed = |error: &io::Error| local(&format!("read {}", path.display()), error);
    match fs::read_to_string(path) {
        Ok(text) => {
            let mode = fs::metadata(path).map_err(|error| failed(&error))?.permissions().mode();
            Ok(DerivationKey::from_hex(&text)
                .map_or(KeyFile::Invalid, |key| KeyFile::Key { fingerprint: key.fingerprint(), mode }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(KeyFile::Missing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(KeyFile::Invalid),
        Err(error) => Err(failed(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_a_key_or_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        assert_eq!(read(&path), Ok(KeyFile::Missing));
        for text in [&b""[..], b"00", b"\xff\xfe", &[b'z'; 64]] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path), Ok(KeyFile::Invalid));
        }
        fs::write(&path, "0a".repeat(32)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let Ok(KeyFile::Key { fingerprint, mode }) = read(&path) else { panic!("no key") };
        assert_eq!((fingerprint.len(), mode & 0o777), (16, 0o640));
        let failure = read(dir.path()).unwrap_err();
        assert!(failure.what.contains(&*dir.path().to_string_lossy()), "{failure:?}");
    }
}
