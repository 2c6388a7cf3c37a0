//! The tree of objects: directories that come and go with what is in them, walked name by name without following links.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, fsync, linkat, mkdirat, openat, statat, unlinkat,
    },
    io::{Errno, Result},
};

use super::incoming::Incoming;
use crate::{BlobEntry, BlobKey, BlobPrefix};

/// What became of one attempt to give an incoming object its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    Created,
    Exists,
    /// A directory of the name is an object, or the name is a directory.
    NameInUse,
    /// Somebody removed a directory, or the object in the way, in the middle: nothing was done, try again.
    Raced,
}

/// The directory `objects/`.
#[derive(Debug)]
pub(super) struct Tree {
    objects: OwnedFd,
    is_synced: bool,
}

/// What is in a directory, as far as it is ours.
enum Item {
    Object(BlobEntry),
    Directory(BlobPrefix),
}

/// The open directories from `objects/` down to one of them.
struct Chain<'a> {
    tree: &'a Tree,
    below: Vec<(&'a str, OwnedFd)>,
}

impl Tree {
    /// The tree in `objects`. Without `is_synced` a crash of the machine may take what was put away.
    pub(super) const fn new(objects: OwnedFd, is_synced: bool) -> Self {
        Self { objects, is_synced }
    }

    /// Shows that incoming objects can be linked into this directory: a test of the file system, without a trace.
    pub(super) fn probe(&self, incoming: &Incoming<'_>) -> Result<()> {
        // No key has a segment that begins with a dot.
        let name = format!(".probe-{}", incoming.name);
        linkat(incoming.dir, &incoming.name, &self.objects, &name, AtFlags::empty())?;
        unlinkat(&self.objects, &name, AtFlags::empty())
    }

    /// Makes what was written to a file or directory survive a crash of the machine.
    pub(super) fn sync(&self, file: impl AsFd) -> Result<()> {
        if self.is_synced { fsync(file) } else { Ok(()) }
    }

    /// Whether there is an object of this name, which then stays there through a crash.
    pub(super) fn holds(&self, key: &BlobKey) -> Result<bool> {
        let (dirs, name) = split(key.as_str());
        let Some(chain) = self.open(dirs)? else { return Ok(false) };
        match statat(chain.last(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_file(&stat) => chain.sync().map(|()| true),
            Ok(_) => Ok(false),
            Err(errno) if means_absent(errno) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Gives an incoming object its name, unless the name is taken.
    pub(super) fn place(&self, incoming: &Incoming<'_>, key: &BlobKey) -> Result<Placed> {
        let (dirs, name) = split(key.as_str());
        let chain = match self.open_or_create(dirs) {
            Ok(chain) => chain,
            Err(Errno::NOENT) => return Ok(Placed::Raced),
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Placed::NameInUse),
            Err(errno) => return Err(errno),
        };
        match linkat(incoming.dir, &incoming.name, chain.last(), name, AtFlags::empty()) {
            Ok(()) => chain.sync().map(|()| Placed::Created),
            Err(Errno::NOENT) => Ok(Placed::Raced),
            Err(Errno::EXIST) => chain.look_at_what_is_in_the_way(name),
            Err(errno) => Err(errno),
        }
    }

    /// Opens an object for reading; its length in bytes.
    pub(super) fn read(&self, key: &BlobKey) -> Result<Option<(File, u64)>> {
        let (dirs, name) = split(key.as_str());
        let Some(chain) = self.open(dirs)? else { return Ok(None) };
        // Not blocking: what is no plain file is no object, and opening it must not hang.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(chain.last(), name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(errno) if means_absent(errno) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let stat = fstat(&file)?;
        Ok(is_file(&stat).then(|| (File::from(file), len_of(&stat))))
    }

    /// All objects under `prefix`, in the order of their keys. `step` is asked before each directory and ends the walk by an error.
    pub(super) fn list<E: From<Errno>>(
        &self,
        prefix: &BlobPrefix,
        step: &impl Fn() -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<BlobEntry>, E> {
        let mut found = Vec::new();
        if let Some(chain) = self.open(dirs_of(prefix))? {
            list_into(chain.last(), prefix, step, &mut found)?;
        }
        found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    /// Removes an object. `false`: there was none.
    pub(super) fn remove(&self, key: &BlobKey) -> Result<bool> {
        let (dirs, name) = split(key.as_str());
        let Some(chain) = self.open(dirs)? else { return Ok(false) };
        let is_removed = remove_file(chain.last(), name)?;
        chain.prune()?;
        Ok(is_removed)
    }

    /// Removes all objects under `prefix` with their directories, as far as these are empty then, and answers how many objects
    /// there were. `step` is asked before each directory and ends the walk by an error.
    pub(super) fn clear<E: From<Errno>>(
        &self,
        prefix: &BlobPrefix,
        step: &impl Fn() -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let Some(chain) = self.open(dirs_of(prefix))? else { return Ok(0) };
        let removed = self.clear_dir(chain.last(), prefix, step)?;
        chain.prune()?;
        Ok(removed)
    }

    fn clear_dir<E: From<Errno>>(
        &self,
        dir: BorrowedFd<'_>,
        prefix: &BlobPrefix,
        step: &impl Fn() -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        step()?;
        let mut removed = 0;
        for item in items(dir, prefix)? {
            match item {
                Item::Object(entry) => removed += u64::from(remove_file(dir, last(entry.key.as_str()))?),
                Item::Directory(below) => {
                    let name = last(dirs_of(&below));
                    if let Some(inner) = absent_as_none(open_dir(dir, name))? {
                        removed += self.clear_dir(inner.as_fd(), &below, step)?;
                        remove_if_empty(dir, name)?;
                    }
                }
            }
        }
        self.sync(dir)?;
        Ok(removed)
    }

    /// The directories of `dirs`; `None` where one of them is not there or is none.
    fn open<'a>(&'a self, dirs: &'a str) -> Result<Option<Chain<'a>>> {
        let mut chain = Chain { tree: self, below: Vec::new() };
        for name in dirs.split('/').filter(|name| !name.is_empty()) {
            match absent_as_none(open_dir(chain.last(), name))? {
                Some(dir) => chain.below.push((name, dir)),
                None => return Ok(None),
            }
        }
        Ok(Some(chain))
    }

    fn open_or_create<'a>(&'a self, dirs: &'a str) -> Result<Chain<'a>> {
        let mut chain = Chain { tree: self, below: Vec::new() };
        for name in dirs.split('/').filter(|name| !name.is_empty()) {
            let dir = match open_dir(chain.last(), name) {
                Err(Errno::NOENT) => {
                    match mkdirat(chain.last(), name, Mode::RWXU) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    open_dir(chain.last(), name)?
                }
                opened => opened?,
            };
            chain.below.push((name, dir));
        }
        Ok(chain)
    }
}

impl Chain<'_> {
    fn last(&self) -> BorrowedFd<'_> {
        self.below.last().map_or_else(|| self.tree.objects.as_fd(), |(_, dir)| dir.as_fd())
    }

    /// Makes the names in these directories survive a crash. All of them, whoever made them: another writer that made one may not
    /// have come to its own sync yet.
    fn sync(&self) -> Result<()> {
        for (_, dir) in self.below.iter().rev() {
            self.tree.sync(dir)?;
        }
        self.tree.sync(&self.tree.objects)
    }

    /// Removes these directories from the lowest up, as far as they are empty, and makes what was removed stay away.
    fn prune(mut self) -> Result<()> {
        while let Some((name, dir)) = self.below.pop() {
            if !remove_if_empty(self.last(), name)? {
                return self.tree.sync(dir);
            }
        }
        self.tree.sync(&self.tree.objects)
    }

    fn look_at_what_is_in_the_way(&self, name: &str) -> Result<Placed> {
        match statat(self.last(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_file(&stat) => self.sync().map(|()| Placed::Exists),
            // A put that failed may have left an empty directory.
            Ok(stat) if is_dir(&stat) && remove_if_empty(self.last(), name)? => Ok(Placed::Raced),
            Ok(_) => Ok(Placed::NameInUse),
            Err(Errno::NOENT) => Ok(Placed::Raced),
            Err(errno) => Err(errno),
        }
    }
}

fn list_into<E: From<Errno>>(
    dir: BorrowedFd<'_>,
    prefix: &BlobPrefix,
    step: &impl Fn() -> std::result::Result<(), E>,
    found: &mut Vec<BlobEntry>,
) -> std::result::Result<(), E> {
    step()?;
    for item in items(dir, prefix)? {
        match item {
            Item::Object(entry) => found.push(entry),
            Item::Directory(below) => {
                if let Some(inner) = absent_as_none(open_dir(dir, last(dirs_of(&below))))? {
                    list_into(inner.as_fd(), &below, step, found)?;
                }
            }
        }
    }
    Ok(())
}

/// The objects and directories in `dir`; what has no name or kind of ours is passed over. The depth of a walk over them is bounded by
/// that of a prefix.
fn items(dir: BorrowedFd<'_>, prefix: &BlobPrefix) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Ok(key) = prefix.key(name) else { continue };
        match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_file(&stat) => items.push(Item::Object(BlobEntry { key, len: len_of(&stat) })),
            Ok(stat) if is_dir(&stat) => items.extend(prefix.prefix(name).ok().map(Item::Directory)),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(items)
}

fn open_dir(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd> {
    openat(dir, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Removes a plain file. `false`: there is none of this name.
fn remove_file(dir: BorrowedFd<'_>, name: &str) -> Result<bool> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if is_file(&stat) => {}
        Ok(_) => return Ok(false),
        Err(errno) if means_absent(errno) => return Ok(false),
        Err(errno) => return Err(errno),
    }
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        // Somebody else removed it, or put a directory there, since we looked.
        Err(Errno::NOENT | Errno::ISDIR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Removes a directory in which nothing is. `true`: it is not there any more.
fn remove_if_empty(dir: BorrowedFd<'_>, name: &str) -> Result<bool> {
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::BUSY) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// No such name, or a name on the way that is no directory of ours: nothing of ours is there.
const fn means_absent(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

fn absent_as_none<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(errno) if means_absent(errno) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

fn is_dir(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn len_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// A key's directories and its last name.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}

fn last(path: &str) -> &str {
    split(path).1
}

fn dirs_of(prefix: &BlobPrefix) -> &str {
    prefix.as_str().trim_end_matches('/')
}
