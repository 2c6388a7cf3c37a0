//! Directories that only the service's own user looks into.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::Path,
};

/// Its owner's alone.
const PRIVATE: u32 = 0o700;
/// Whatever anybody else could do.
const OTHERS: u32 = 0o077;

/// Makes a directory, and what leads to it, for its owner alone, whatever the umask. One that is there stays as it is: who made it, or
/// mounted it, said who looks into it.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}

/// The same for a directory of which all is ours: one that is there is closed to everybody else too.
pub(crate) fn make_own(path: &Path) -> io::Result<()> {
    make(path)?;
    if fs::metadata(path)?.permissions().mode() & OTHERS != 0
        && let Err(error) = fs::set_permissions(path, Permissions::from_mode(PRIVATE))
    {
        // Somebody else's file system, or somebody else's directory: whoever runs this has to know, and tenants are served.
        tracing::warn!(path = %path.display(), %error, "others may look into this directory, and it could not be closed to them");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_the_owners_alone_and_what_is_there_is_closed_where_it_is_ours() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, made) = (dir.path().join("theirs"), dir.path().join("theirs/made/nodes"));
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, Permissions::from_mode(0o755)).unwrap();
        make(&theirs).unwrap();
        make_own(&made).unwrap();
        assert_eq!((mode(&theirs), mode(made.parent().unwrap()), mode(&made)), (0o755, PRIVATE, PRIVATE));
        fs::set_permissions(&made, Permissions::from_mode(0o775)).unwrap();
        make_own(&made).unwrap();
        assert_eq!(mode(&made), PRIVATE);
    }
}
