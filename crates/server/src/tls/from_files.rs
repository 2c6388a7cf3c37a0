//! What is made of files, and made anew when they change.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use sha2::{Digest as _, Sha256};

use super::pem::{TlsError, read};

type Make<T> = Box<dyn Fn(&[Vec<u8>]) -> Result<T, TlsError> + Send + Sync>;

/// The last good thing that was made of some files. What they hold is compared, never their times: a mounted secret is changed by
/// turning a symbolic link, and a copy may be older than what it replaces.
pub(crate) struct FromFiles<T> {
    files: Vec<PathBuf>,
    make: Make<T>,
    /// Written by [`FromFiles::look`] alone.
    now: RwLock<Arc<T>>,
    seen: Mutex<Seen>,
}

/// What was seen in the files.
#[derive(Debug)]
struct Seen {
    /// Of what is in use.
    used: [u8; 32],
    /// Of what could not be used at the last look, and whether somebody was told.
    refused: Option<([u8; 32], bool)>,
}

/// What a look at the files came to.
#[derive(Debug)]
pub(crate) enum Looked {
    /// Nothing has changed.
    Same,
    /// What they hold now is in use.
    Taken,
    /// What they hold cannot be used, for the first time: they may be about to change.
    Changing,
    /// What they hold cannot be used, as at the look before. The last good one stays.
    Refused {
        /// Why.
        error: TlsError,
        /// Whether that was not said before of these contents.
        is_news: bool,
    },
}

impl<T> FromFiles<T> {
    /// Made of `files` for the first time.
    pub(crate) fn read(
        files: Vec<PathBuf>,
        make: impl Fn(&[Vec<u8>]) -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        let contents = contents_of(&files)?;
        let now = RwLock::new(Arc::new(make(&contents)?));
        let seen = Mutex::new(Seen { used: digest(&contents), refused: None });
        Ok(Self { files, make: Box::new(make), now, seen })
    }

    /// The last good one.
    pub(crate) fn now(&self) -> Arc<T> {
        // What is written is one pointer.
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files again. Two files are not changed in one moment: what cannot be used is refused once it stays so from one look to
    /// the next.
    pub(crate) fn look(&self) -> Looked {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, made) = match contents_of(&self.files) {
            Ok(contents) => {
                let found = digest(&contents);
                if found == seen.used {
                    seen.refused = None;
                    return Looked::Same;
                }
                (found, (self.make)(&contents))
            }
            Err(error) => (digest(&[error.to_string().into_bytes()]), Err(error)),
        };
        match made {
            Ok(made) => {
                *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
                *seen = Seen { used: found, refused: None };
                Looked::Taken
            }
            Err(error) => {
                let before = seen.refused.filter(|(refused, _)| *refused == found);
                seen.refused = Some((found, before.is_some()));
                match before {
                    None => Looked::Changing,
                    Some((_, is_told)) => Looked::Refused { error, is_news: !is_told },
                }
            }
        }
    }
}

impl<T> fmt::Debug for FromFiles<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFiles").field("files", &self.files).finish_non_exhaustive()
    }
}

fn contents_of(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, TlsError> {
    files.iter().map(|file| read(file)).collect()
}

fn digest(contents: &[Vec<u8>]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for content in contents {
        digest.update((content.len() as u64).to_be_bytes());
        digest.update(content);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::*;

    /// Two files that hold the same text, behind a link to their directory as Kubernetes mounts them.
    fn pair() -> (tempfile::TempDir, FromFiles<String>) {
        let dir = tempfile::tempdir().unwrap();
        put(&dir, "first", "a", "a");
        let files = ["one", "other"].map(|name| {
            let file = dir.path().join(name);
            symlink(format!("..data/{name}"), &file).unwrap();
            file
        });
        let made = FromFiles::read(files.to_vec(), |contents| {
            let [one, other] = contents else { panic!("two files") };
            if one == other {
                return Ok(String::from_utf8(one.clone()).unwrap());
            }
            Err(TlsError::unusable(Path::new("one"), &"they differ"))
        });
        (dir, made.unwrap())
    }

    fn put(dir: &tempfile::TempDir, version: &str, one: &str, other: &str) {
        let of = dir.path().join(version);
        fs::create_dir(&of).unwrap();
        fs::write(of.join("one"), one).unwrap();
        fs::write(of.join("other"), other).unwrap();
        let (coming, link) = (dir.path().join("..tmp"), dir.path().join("..data"));
        symlink(version, &coming).unwrap();
        fs::rename(coming, link).unwrap();
    }

    #[test]
    fn a_link_that_is_turned_is_a_change() {
        let (dir, pair) = pair();
        assert!(matches!(pair.look(), Looked::Same));
        put(&dir, "second", "b", "b");
        assert!(matches!(pair.look(), Looked::Taken));
        assert_eq!(*pair.now(), "b");
        put(&dir, "third", "b", "b");
        assert!(matches!(pair.look(), Looked::Same), "what they hold counts, and nothing else of them");
    }

    #[test]
    fn what_cannot_be_used_leaves_the_last_good_one_and_is_told_once() {
        let (dir, pair) = pair();
        put(&dir, "second", "b", "c");
        assert!(matches!(pair.look(), Looked::Changing));
        assert!(matches!(pair.look(), Looked::Refused { is_news: true, .. }));
        assert!(matches!(pair.look(), Looked::Refused { is_news: false, .. }));
        assert_eq!(*pair.now(), "a");
        put(&dir, "third", "d", "e");
        assert!(matches!(pair.look(), Looked::Changing), "something else is looked at anew");
        fs::remove_file(dir.path().join("other")).unwrap();
        assert!(matches!(pair.look(), Looked::Changing));
        let Looked::Refused { error, is_news: true } = pair.look() else { panic!("not refused") };
        assert!(error.to_string().contains("other"), "{error}");
        symlink("..data/other", dir.path().join("other")).unwrap();
        put(&dir, "fourth", "f", "f");
        assert!(matches!(pair.look(), Looked::Taken));
        assert_eq!(*pair.now(), "f");
    }

    #[test]
    fn what_goes_back_to_what_is_in_use_is_well_again() {
        let (dir, pair) = pair();
        put(&dir, "second", "b", "c");
        assert!(matches!(pair.look(), Looked::Changing));
        put(&dir, "third", "a", "a");
        assert!(matches!(pair.look(), Looked::Same));
        put(&dir, "fourth", "b", "c");
        assert!(matches!(pair.look(), Looked::Changing));
    }
}
