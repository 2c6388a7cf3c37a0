//! PEM files.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

/// The longest file that is read: a bundle of every public authority has a quarter of it.
const BYTES_MAX: u64 = 1024 * 1024;

/// Why a file of certificates or of a key cannot be used. It shows nothing of it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It cannot be read.
    #[error("failed to read {path}: {detail}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system, or the format, says.
        detail: String,
    },
    /// It holds nothing of the kind.
    #[error("{path} holds no {what} in PEM", path = path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// What it holds cannot be used, or not with the other file.
    #[error("{path} cannot be used: {detail}", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the library says.
        detail: String,
    },
    /// The library refuses what it was told.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

impl TlsError {
    /// The file that it is about.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unreadable { path, .. } | Self::Nothing { path, .. } | Self::Unusable { path, .. } => {
                Some(path)
            }
            Self::Setup(_) => None,
        }
    }

    pub(super) fn unusable(path: &Path, error: &dyn ToString) -> Self {
        Self::Unusable { path: path.to_owned(), detail: error.to_string() }
    }
}

/// What stands in a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |detail: String| TlsError::Unreadable { path: path.to_owned(), detail };
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(unreadable(format!("it is longer than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// The certificates in a file's bytes, its own first.
pub(super) fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let nothing = || TlsError::Nothing { path: path.to_owned(), what: "certificate" };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let found = found.map_err(|_| nothing())?;
    if found.is_empty() { Err(nothing()) } else { Ok(found) }
}

/// The key in a file's bytes.
pub(super) fn private_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(bytes)
        .map_err(|_| TlsError::Nothing { path: path.to_owned(), what: "private key" })
}
