//! A tenant's own directory, and the guard of everything that deletes there (contract rows P1, P4).
//!
//! A path is normalised as text and never resolved: the directory that was checked is the one that goes, whatever links lie on
//! the way. What a path leads to behind a `..` after a link is somebody else's.

use std::path::{Component, Path, PathBuf};

use leasehold_types::LeaseKey;

use crate::TenureError;

/// The tenant's directory under a replica's state root: `<state root>/orgs/<org>/tenants/<tenant>`.
#[must_use]
pub fn tenant_root(state_root: &Path, key: &LeaseKey) -> PathBuf {
    state_root.join(tail(key))
}

fn tail(key: &LeaseKey) -> PathBuf {
    ["orgs", key.org().as_str(), "tenants", key.tenant().as_str()].iter().collect()
}

/// A directory that was checked to be a tenant's own. Only [`OwnRoot::check`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnRoot(PathBuf);

impl OwnRoot {
    /// Checks that `root`, read as text, is an absolute path that ends in this tenant's place below some state root.
    pub(crate) fn check(key: &LeaseKey, root: &Path) -> Result<Self, TenureError> {
        let refuse =
            || TenureError::InvalidRoot { key: key.clone(), root: root.to_path_buf(), expected: tail(key) };
        let normal = normalise(root).ok_or_else(refuse)?;
        // The state root itself has to be more than `/`.
        let deep = normal.components().count() > tail(key).components().count() + 1;
        if normal.ends_with(tail(key)) && deep { Ok(Self(normal)) } else { Err(refuse()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Deletes the directory with everything in it. A link in its place goes itself; what it leads to stays.
    pub(crate) fn remove(&self) -> std::io::Result<()> {
        match std::fs::symlink_metadata(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
            Ok(meta) if meta.file_type().is_symlink() => return std::fs::remove_file(&self.0),
            Ok(_) => {}
        }
        // An upload that was let go may still create a file beside us: bounded tries.
        let mut last = Ok(());
        for _ in 0..8 {
            last = match std::fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
            if last.is_ok() {
                break;
            }
        }
        last
    }
}

/// The path without `.` and `..`, by its text alone. `None`: not absolute, or it climbs above the root.
fn normalise(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    if !path.is_absolute() {
        return None;
    }
    for component in path.components() {
        match component {
            Component::Prefix(_) => return None,
            Component::RootDir => normal.push("/"),
            Component::CurDir => {}
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.file_name()?;
                normal.pop();
            }
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> LeaseKey {
        "acme/user-1".parse().unwrap()
    }

    #[test]
    fn only_the_tenants_own_place_is_a_root() {
        for root in [
            "/s/orgs/acme/tenants/user-1",
            "/s/x/../orgs/acme/tenants/user-1/.",
            "/s//orgs/acme/./tenants/user-1/",
        ] {
            assert_eq!(
                OwnRoot::check(&key(), Path::new(root)).unwrap().path(),
                Path::new("/s/orgs/acme/tenants/user-1")
            );
        }
        for root in [
            "/",
            "/s",
            "s/orgs/acme/tenants/user-1",
            "/orgs/acme/tenants/user-1",
            "/s/orgs/acme/tenants/user-2",
            "/s/orgs/acme/tenants/user-1/..",
            "/s/orgs/acme/tenants/user-1/x",
            "/s/orgs/acme/tenants",
            "/s/xorgs/acme/tenants/user-1/../../tenants/user-2",
            "/../../orgs/acme/tenants/user-1",
            "/s/orgs/other/tenants/user-1",
        ] {
            let error = OwnRoot::check(&key(), Path::new(root)).unwrap_err();
            assert_eq!(error.code(), leasehold_types::ErrorCode::InvalidArgument, "{root}");
        }
    }
}
