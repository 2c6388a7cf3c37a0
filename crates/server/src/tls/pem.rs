//! PEM files.

use std::path::Path;

use rustls::pki_types::{CertificateDer, pem::PemObject as _};

/// Why a file cannot be used. It shows nothing of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// It cannot be read.
    #[error("failed to read {path}: {detail}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system, or the format, says.
        detail: String,
    },
    /// It holds nothing of the kind.
    #[error("{path} holds no {what} in PEM")]
    Nothing {
        /// The file.
        path: String,
        /// What was looked for.
        what: &'static str,
    },
    /// What it holds does not go together.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

fn unreadable(path: &Path, error: &dyn ToString) -> TlsError {
    TlsError::Unreadable { path: path.display().to_string(), detail: error.to_string() }
}

fn nothing(path: &Path, what: &'static str) -> TlsError {
    TlsError::Nothing { path: path.display().to_string(), what }
}

/// The certificates of a file, its own first.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|_| nothing(path, "certificate"))?;
    if found.is_empty() { Err(nothing(path, "certificate")) } else { Ok(found) }
}
