//! Programs that the machine has.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Where programs lie that are for an administrator, and so on nobody else's path.
const FOR_ADMINISTRATORS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The program of this name, on the path or where administrators' programs lie.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    directories().map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// Every directory in which programs are looked for.
pub(crate) fn directories() -> impl Iterator<Item = PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths: Vec<PathBuf> = env::split_paths(&paths).collect();
    paths.into_iter().chain(FOR_ADMINISTRATORS.map(PathBuf::from))
}

/// The directories in `parent`, the highest version first.
pub(crate) fn newest_first(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort_by_key(|path| std::cmp::Reverse(version(path)));
    found
}

fn version(path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["9.6", "15", "9.10", "other"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let names: Vec<_> = newest_first(parent.path())
            .into_iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["15", "9.10", "9.6", "other"]);
    }
}
