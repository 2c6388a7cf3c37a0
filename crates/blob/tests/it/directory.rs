//! What is the directory backend's own: where files lie, what a crash leaves, what somebody else puts there, what a drop undoes.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use leasehold_blob::{BlobError, BlobKey, BlobPrefix, BlobStore, DirectoryStore, Payload, Put};
use leasehold_types::ErrorCode;
use tempfile::TempDir;

pub(crate) fn key(name: &str) -> BlobKey {
    name.parse().unwrap()
}

fn prefix(name: &str) -> BlobPrefix {
    name.parse().unwrap()
}

/// The paths of all that is no directory under `root`, relative to it, in order.
pub(crate) fn files_under(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            } else {
                files.push(entry.path().strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

fn opened() -> (DirectoryStore, TempDir) {
    let root = tempfile::tempdir().unwrap();
    (DirectoryStore::open_without_sync(root.path()).unwrap(), root)
}

async fn put(store: &DirectoryStore, name: &str, body: &'static str) -> Result<Put, BlobError> {
    store.put_if_absent(&key(name), Bytes::from_static(body.as_bytes()).into()).await
}

async fn names(store: &DirectoryStore, under: &str) -> Vec<String> {
    let entries = store.list(&prefix(under)).await.unwrap();
    entries.into_iter().map(|entry| entry.key.to_string()).collect()
}

#[tokio::test]
async fn objects_are_files_of_their_names_and_outlive_the_store() {
    let root = tempfile::tempdir().unwrap();
    // The only test that waits for the disk, for the sake of the path that does.
    let store = DirectoryStore::open(&root.path().join("made/on/the/way")).unwrap();
    assert_eq!(put(&store, "acme/u/e00000001/base.json", "{}").await.unwrap(), Put::Created);
    drop(store);
    let file = root.path().join("made/on/the/way/objects/acme/u/e00000001/base.json");
    assert_eq!(fs::read(&file).unwrap(), b"{}");
    assert_eq!(fs::metadata(&file).unwrap().nlink(), 1);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o077, 0, "nobody else reads a tenant's objects");

    let store = DirectoryStore::open(&root.path().join("made/on/the/way")).unwrap();
    assert_eq!(put(&store, "acme/u/e00000001/base.json", "late").await.unwrap(), Put::Exists);
    assert_eq!(store.delete_prefix(&prefix("acme/")).await.unwrap(), 1);
    assert!(files_under(root.path()).is_empty());
}

#[test]
fn a_root_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    // A file where the directory should be, one where its parent should be, and a file system that takes no files.
    for root in [file.clone(), file.join("below"), PathBuf::from("/proc/leasehold")] {
        let error = DirectoryStore::open(&root).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LocalIo);
        assert!(!error.is_transient());
        assert_eq!(error.to_string(), format!("failed to open a blob store in {}", root.display()));
    }
}

#[tokio::test]
async fn what_a_dead_writer_left_is_never_seen_and_goes_at_the_next_start() {
    let (store, root) = opened();
    let left = root.path().join("incoming/put-1-0");
    fs::write(&left, "half").unwrap();
    fs::write(root.path().join("incoming/notes"), "not ours").unwrap();
    assert!(names(&store, "incoming/").await.is_empty());
    assert_eq!(put(&store, "t/1", "whole").await.unwrap(), Put::Created);
    assert!(left.exists());

    let again = DirectoryStore::open_without_sync(root.path()).unwrap();
    assert_eq!(files_under(root.path()), [Path::new("incoming/notes"), Path::new("objects/t/1")]);
    assert_eq!(names(&again, "t/").await, ["t/1"]);
}

#[test]
fn what_a_living_writer_is_writing_stays_at_anothers_start() {
    let (_store, root) = opened();
    let path = root.path().join("incoming/put-1-0");
    let writing = fs::File::create(&path).unwrap();
    writing.lock().unwrap();
    DirectoryStore::open_without_sync(root.path()).unwrap();
    assert!(path.exists());
    drop(writing);
    DirectoryStore::open_without_sync(root.path()).unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn the_link_is_the_object_whatever_happens_to_the_incoming_name() {
    // A crash between the link and the removal of the incoming name leaves both.
    let (_store, root) = opened();
    let left = root.path().join("incoming/put-1-0");
    fs::write(&left, "whole").unwrap();
    fs::create_dir(root.path().join("objects/t")).unwrap();
    fs::hard_link(&left, root.path().join("objects/t/1")).unwrap();

    let store = DirectoryStore::open_without_sync(root.path()).unwrap();
    assert_eq!(files_under(root.path()), [Path::new("objects/t/1")]);
    assert_eq!(store.get(&key("t/1"), 10).await.unwrap().unwrap(), "whole");
}

#[tokio::test]
async fn failed_puts_leave_nothing_on_their_way() {
    let (store, root) = opened();
    let dir = tempfile::tempdir().unwrap();
    let unreadable = Payload::File(dir.path().to_owned());
    assert_eq!(store.put_if_absent(&key("t/1"), unreadable).await.unwrap_err().code(), ErrorCode::LocalIo);
    put(&store, "t/2", "x").await.unwrap();
    put(&store, "t/2", "y").await.unwrap();
    assert!(matches!(put(&store, "t/2/3", "z").await, Err(BlobError::NameInUse { .. })));
    assert_eq!(files_under(root.path()), [Path::new("objects/t/2")]);
}

#[tokio::test]
async fn a_name_is_an_object_or_the_beginning_of_others() {
    let (store, _root) = opened();
    put(&store, "t/a/1", "x").await.unwrap();
    let error = put(&store, "t/a", "y").await.unwrap_err();
    assert!(matches!(&error, BlobError::NameInUse { key } if key == "t/a"), "{error:?}");
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert!(matches!(put(&store, "t/a/1/2", "z").await, Err(BlobError::NameInUse { .. })));
    assert_eq!(names(&store, "t/").await, ["t/a/1"]);
}

#[tokio::test]
async fn an_empty_directory_is_in_nobodys_way() {
    // A put that failed after it had made its directory leaves one.
    let (store, root) = opened();
    fs::create_dir_all(root.path().join("objects/t/a")).unwrap();
    assert!(names(&store, "t/").await.is_empty());
    assert_eq!(put(&store, "t/a", "x").await.unwrap(), Put::Created);
}

#[tokio::test]
async fn directories_go_with_their_last_object() {
    let (store, root) = opened();
    put(&store, "acme/u/e00000001/base.json", "{}").await.unwrap();
    put(&store, "acme/v/e00000001/base.json", "{}").await.unwrap();
    store.delete(&key("acme/u/e00000001/base.json")).await.unwrap();
    let objects = root.path().join("objects");
    assert!(!objects.join("acme/u").exists() && objects.join("acme/v").exists());
    store.delete_prefix(&prefix("acme/v/")).await.unwrap();
    assert!(objects.exists() && fs::read_dir(&objects).unwrap().next().is_none());
}

#[tokio::test]
async fn what_is_no_object_is_neither_listed_nor_read_nor_deleted() {
    let (store, root) = opened();
    put(&store, "t/1", "x").await.unwrap();
    let t = root.path().join("objects/t");
    for name in [".hidden", "white space", "ümlaut", "trailing.", &"long".repeat(60)] {
        fs::write(t.join(name), "foreign").unwrap();
    }
    fs::create_dir_all(t.join(".trash/deep")).unwrap();
    fs::write(t.join(".trash/deep/2"), "foreign").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, t.join("pipe"), rustix::fs::Mode::RWXU).unwrap();

    assert_eq!(names(&store, "t/").await, ["t/1"]);
    assert_eq!(store.get(&key("t/pipe"), 10).await.unwrap(), None);
    assert!(!store.delete(&key("t/pipe")).await.unwrap());
    assert!(matches!(put(&store, "t/pipe", "y").await, Err(BlobError::NameInUse { .. })));
    let before = files_under(&t).len();
    assert_eq!(store.delete_prefix(&prefix("t/")).await.unwrap(), 1);
    assert_eq!(files_under(&t).len(), before - 1);
}

#[tokio::test]
async fn links_in_the_tree_lead_nowhere() {
    let (store, root) = opened();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "theirs").unwrap();
    put(&store, "t/1", "x").await.unwrap();
    let t = root.path().join("objects/t");
    symlink(outside.path(), t.join("dir")).unwrap();
    symlink(outside.path().join("secret"), t.join("file")).unwrap();

    assert_eq!(names(&store, "t/").await, ["t/1"]);
    assert!(names(&store, "t/dir/").await.is_empty());
    for name in ["t/dir/secret", "t/file"] {
        assert_eq!(store.get(&key(name), 10).await.unwrap(), None, "{name}");
        let to = root.path().join("copy");
        assert_eq!(store.download(&key(name), &to).await.unwrap(), None, "{name}");
        assert!(!store.delete(&key(name)).await.unwrap(), "{name}");
        assert!(matches!(put(&store, name, "y").await, Err(BlobError::NameInUse { .. })), "{name}");
    }
    assert!(matches!(put(&store, "t/dir/new", "y").await, Err(BlobError::NameInUse { .. })));
    assert_eq!(store.delete_prefix(&prefix("t/dir/")).await.unwrap(), 0);
    assert_eq!(store.delete_prefix(&prefix("t/")).await.unwrap(), 1);
    assert_eq!(files_under(outside.path()), [Path::new("secret")]);
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"theirs");
}

#[tokio::test]
async fn a_store_whose_directory_was_removed_fails_and_says_so() {
    let (store, root) = opened();
    fs::remove_dir_all(root.path().join("objects")).unwrap();
    let error = put(&store, "t/1", "x").await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("put t/1"), "{error}");
    assert!(files_under(root.path()).is_empty());
}

/// Writes into a named pipe, which is how a test decides when a put comes to the end of its file.
struct SlowFile {
    path: PathBuf,
    _dir: TempDir,
}

impl SlowFile {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        Self { path, _dir: dir }
    }

    /// Completes once the put has opened the file to read it.
    async fn writer(&self) -> tokio::fs::File {
        tokio::fs::OpenOptions::new().write(true).open(&self.path).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_was_dropped_before_its_file_was_read_puts_nothing() {
    use tokio::io::AsyncWriteExt as _;

    let (store, root) = opened();
    let slow = SlowFile::new();
    let (putting, file) = (store.clone(), slow.path.clone());
    let put = tokio::spawn(async move { putting.put_if_absent(&key("t/1"), Payload::File(file)).await });
    let mut writer = slow.writer().await;
    writer.write_all(b"half").await.unwrap();
    writer.flush().await.unwrap();
    let arrived = || {
        let incoming = files_under(&root.path().join("incoming"));
        incoming.iter().any(|file| fs::metadata(root.path().join("incoming").join(file)).unwrap().len() == 4)
    };
    while !arrived() {
        tokio::task::yield_now().await;
    }
    put.abort();
    assert!(put.await.unwrap_err().is_cancelled());
    // The end of the file comes after the drop: what was read is not to appear.
    drop(writer);
    while !files_under(&root.path().join("incoming")).is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.get(&key("t/1"), 10).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_that_nobody_waits_for_leaves_no_file() {
    let (store, root) = opened();
    let (name, image) = (key("t/1"), Bytes::from(vec![7; 8 * 1024 * 1024]));
    store.put_if_absent(&name, image.into()).await.unwrap();
    let to = root.path().join("copy");
    for _ in 0..8 {
        let mut download = store.download(&name, &to);
        if at_once(&mut download).await.is_some() {
            // On a busy machine it may be over by the time it is first asked: then it was waited for.
            fs::remove_file(&to).unwrap();
            continue;
        }
        while !to.exists() {
            tokio::task::yield_now().await;
        }
        drop(download);
        while to.exists() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(store.download(&name, &to).await.unwrap(), Some(8 * 1024 * 1024));
}

/// The output if it is there at once.
async fn at_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_calls_than_the_disk_takes_at_once_all_come_to_their_turn() {
    let (store, _root) = opened();
    let store = Arc::new(store);
    let puts: Vec<_> = (0..200)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { put(&store, &format!("t/{n}"), "x").await })
        })
        .collect();
    for put in puts {
        assert_eq!(put.await.unwrap().unwrap(), Put::Created);
    }
    assert_eq!(names(&store, "t/").await.len(), 200);
}
