//! The files that are kept of a format.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

/// What a file of a corpus has to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// `valid`: it is read.
    Valid,
    /// `refused`: it is not.
    Refused,
    /// `found`: it once broke a law. Whether it is read is not said; the laws hold.
    Found,
}

impl Kept {
    const ALL: [Self; 3] = [Self::Valid, Self::Refused, Self::Found];

    const fn directory(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Refused => "refused",
            Self::Found => "found",
        }
    }
}

/// The longest file that is kept: what has to be longer is made up.
const BYTES_MAX: u64 = 64 * 1024;

/// The files of one format: `<directory>/<format>/{valid,refused,found}/<what it is>`.
#[derive(Clone, Debug)]
pub struct Corpus {
    directory: PathBuf,
}

impl Corpus {
    /// The corpus of `format` below `directory`.
    #[must_use]
    pub fn of(directory: &Path, format: &str) -> Self {
        Self { directory: directory.join(format) }
    }

    /// Its files, in the order of their names.
    ///
    /// # Panics
    ///
    /// When it cannot be read, has a file in a place that nothing reads, or has nothing valid or nothing refused.
    #[must_use]
    pub fn files(&self) -> Vec<(Kept, PathBuf, Vec<u8>)> {
        let known: BTreeSet<PathBuf> =
            Kept::ALL.into_iter().map(|kept| self.directory.join(kept.directory())).collect();
        for entry in entries(&self.directory) {
            assert!(known.contains(&entry), "{} is read by nothing", entry.display());
        }
        let mut files = Vec::new();
        for kept in Kept::ALL {
            let directory = self.directory.join(kept.directory());
            let found = if directory.exists() { entries(&directory) } else { Vec::new() };
            assert!(kept == Kept::Found || !found.is_empty(), "{} has no file", directory.display());
            for path in found {
                let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert!(
                    bytes.len() as u64 <= BYTES_MAX,
                    "{} is longer than {BYTES_MAX} bytes",
                    path.display()
                );
                files.push((kept, path, bytes));
            }
        }
        files
    }

    /// The bytes of its valid files.
    #[must_use]
    pub fn valid(&self) -> Vec<Vec<u8>> {
        let files = self.files().into_iter().filter(|(kept, ..)| *kept == Kept::Valid);
        files.map(|(.., bytes)| bytes).collect()
    }

    /// Keeps what broke a law, and says where; `None` where it could not be written.
    pub(crate) fn keep(&self, input: &[u8]) -> Option<PathBuf> {
        let directory = self.directory.join(Kept::Found.directory());
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let path = directory.join(format!("{:016x}", hasher.finish()));
        fs::create_dir_all(&directory).and_then(|()| fs::write(&path, input)).ok()?;
        Some(path)
    }
}

/// Holds the directories below `directory` to be `formats`, no more and no fewer: a corpus that nothing asks shows nothing.
///
/// # Panics
///
/// When they are not.
pub fn assert_reached(directory: &Path, formats: &[&str]) {
    let found: BTreeSet<String> = entries(directory)
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let asked: BTreeSet<String> = formats.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(found, asked, "the formats below {} and those that are asked", directory.display());
    for format in formats {
        assert!(!Corpus::of(directory, format).files().is_empty());
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = read
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", directory.display())).path())
        .collect();
    paths.sort();
    paths
}
