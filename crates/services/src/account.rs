//! Who the servers run as.

use std::{
    fs, io,
    os::unix::{fs::chown, process::CommandExt as _},
    path::Path,
    process::Command,
};

/// Preferred first: a machine that has Postgres has its user; `nobody` is everywhere.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// A user without rights, in whose name the servers run where this program is root: Postgres and `PgBouncer` refuse to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// One that this machine has.
    pub(crate) fn without_rights() -> io::Result<Self> {
        let accounts = fs::read_to_string("/etc/passwd")?;
        let found = NAMES.into_iter().find_map(|name| Self::named(name, &accounts));
        found.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "neither postgres nor nobody is a user here")
        })
    }

    fn named(name: &str, accounts: &str) -> Option<Self> {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (Some(found), Some(_), Some(uid), Some(gid)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                return None;
            };
            if found == name { Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? }) } else { None }
        })
    }

    /// Lets `command` run as this user.
    pub(crate) fn runs(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives it a file or directory.
    pub(crate) fn owns(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts =
            "root:x:0:0::/root:/bin/sh\nbroken\nnobody2:x:7:8::/:/bin/sh\nnobody:x:65534:65533::/:/bin/no\n";
        assert_eq!(Account::named("nobody", accounts), Some(Account { uid: 65534, gid: 65533 }));
        assert_eq!(Account::named("postgres", accounts), None);
    }
}
