//! What every blob store does: [`BlobStore`]'s contract, a behaviour at a time.
//!
//! A backend runs all of it by [`blob_conformance!`](crate::blob_conformance).

use std::{any::Any, fmt, path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, future::join_all, stream};
use leasehold_blob::{BlobEntry, BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};
use leasehold_types::ErrorCode;
use tempfile::TempDir;

/// A fresh, empty store and what a behaviour needs beside it.
pub struct BlobFixture {
    /// The store.
    pub store: Arc<dyn BlobStore>,
    /// A second, independent way into the same store, as another process has it.
    pub another: Arc<dyn BlobStore>,
    scratch: TempDir,
    _keeps: Box<dyn Any + Send + Sync>,
}

impl BlobFixture {
    /// A fixture that drops `keeps` (a directory, a container) when it ends.
    ///
    /// # Panics
    /// If there can be no directory for local files.
    #[must_use]
    pub fn new(
        store: Arc<dyn BlobStore>,
        another: Arc<dyn BlobStore>,
        keeps: impl Any + Send + Sync,
    ) -> Self {
        let scratch = tempfile::tempdir().expect("a directory for local files");
        Self { store, another, scratch, _keeps: Box::new(keeps) }
    }

    fn local(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    async fn put(&self, name: &str, body: impl Into<Bytes>) -> Put {
        put(&self.store, name, body).await
    }

    async fn read(&self, name: &str) -> Option<Bytes> {
        self.store.get(&key(name), LEN_MAX).await.expect("a get")
    }

    async fn names(&self, under: &str) -> Vec<String> {
        let entries = self.store.list(&prefix(under)).await.expect("a listing");
        entries.into_iter().map(|entry| entry.key.to_string()).collect()
    }
}

impl fmt::Debug for BlobFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobFixture").field("store", &self.store).finish_non_exhaustive()
    }
}

const LEN_MAX: u64 = 16 * 1024 * 1024;

fn key(name: &str) -> BlobKey {
    name.parse().expect("an object key")
}

fn prefix(name: &str) -> BlobPrefix {
    name.parse().expect("a prefix")
}

async fn put(store: &Arc<dyn BlobStore>, name: &str, body: impl Into<Bytes>) -> Put {
    store.put_if_absent(&key(name), Payload::Bytes(body.into())).await.expect("a put")
}

/// `len` bytes in which no part is like another (xorshift), so that a part in the wrong place shows.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// What is put is read, by whoever asks.
pub async fn a_put_creates_what_a_get_reads(f: &BlobFixture) {
    assert_eq!(f.put("acme/u/e00000001/base.json", "{}").await, Put::Created);
    assert_eq!(f.read("acme/u/e00000001/base.json").await.expect("what was put"), "{}");
    let seen = f.another.get(&key("acme/u/e00000001/base.json"), LEN_MAX).await.expect("a get");
    assert_eq!(seen.expect("what was put"), "{}");
}

/// No object is ever replaced, by bytes or by a file.
pub async fn a_put_of_a_taken_name_changes_nothing(f: &BlobFixture) {
    assert_eq!(f.put("a/1", "first").await, Put::Created);
    assert_eq!(f.put("a/1", "second").await, Put::Exists);
    assert_eq!(put(&f.another, "a/1", "third").await, Put::Exists);
    let file = f.local("fourth");
    std::fs::write(&file, noise(100_000)).expect("a local file");
    let by_file = f.store.put_if_absent(&key("a/1"), Payload::File(file)).await.expect("a put");
    assert_eq!(by_file, Put::Exists);
    assert_eq!(f.read("a/1").await.expect("the first"), "first");
}

/// Of puts at the same time exactly one is told that it created the object, and that one's bytes are there.
pub async fn of_racing_puts_exactly_one_wins(f: &BlobFixture) {
    for round in 0..10 {
        let name = format!("race/{round}");
        let puts = (0..16).map(|writer| {
            let store = if writer % 2 == 0 { Arc::clone(&f.store) } else { Arc::clone(&f.another) };
            let name = name.clone();
            tokio::spawn(async move { put(&store, &name, format!("writer {writer}")).await })
        });
        let answers = join_all(puts).await.into_iter().map(|answer| answer.expect("a writer"));
        let winners: Vec<_> =
            answers.enumerate().filter_map(|(writer, put)| (put == Put::Created).then_some(writer)).collect();
        assert_eq!(winners.len(), 1, "{name}: {winners:?}");
        let body = f.read(&name).await.expect("the winner's");
        assert_eq!(body, format!("writer {}", winners[0]));
    }
}

/// Nothing there is an answer and no error.
pub async fn what_was_never_put_is_absent(f: &BlobFixture) {
    assert_eq!(f.read("a/b/c").await, None);
    f.put("a/b/c", "x").await;
    // Neither the beginning of a name, nor what would lie below an object, is an object.
    for name in ["a", "a/b", "a/b/cc", "a/b/c/d"] {
        assert_eq!(f.read(name).await, None, "{name}");
        assert!(!f.store.delete(&key(name)).await.expect("a delete"), "{name}");
    }
    assert!(f.names("a/b/c/").await.is_empty());
    assert!(f.names("elsewhere/").await.is_empty());
    assert_eq!(f.store.delete_prefix(&prefix("elsewhere/")).await.expect("a delete"), 0);
    assert_eq!(f.store.delete_prefix(&prefix("a/b/c/")).await.expect("a delete"), 0);
    assert_eq!(f.read("a/b/c").await.expect("untouched"), "x");
}

/// The caller's bound holds to the byte, and the error says how long the object is.
pub async fn an_object_past_the_callers_bound_is_not_read(f: &BlobFixture) {
    f.put("a/1", "12345").await;
    assert_eq!(f.store.get(&key("a/1"), 5).await.expect("a get").expect("within"), "12345");
    let error = f.store.get(&key("a/1"), 4).await.expect_err("past the bound");
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(!error.is_transient());
    assert!(matches!(&error, BlobError::TooLarge { key, len: 5, len_max: 4 } if key == "a/1"), "{error:?}");
}

/// An object may be empty, and is there.
pub async fn an_empty_object_is_an_object(f: &BlobFixture) {
    assert_eq!(f.put("a/empty", "").await, Put::Created);
    assert_eq!(f.put("a/empty", "late").await, Put::Exists);
    assert_eq!(f.store.get(&key("a/empty"), 0).await.expect("a get").expect("it"), "");
    assert_eq!(
        f.store.list(&prefix("a/")).await.expect("a listing"),
        [BlobEntry { key: key("a/empty"), len: 0 }]
    );
    let to = f.local("empty");
    assert_eq!(f.store.download(&key("a/empty"), &to).await.expect("a download"), Some(0));
    assert_eq!(std::fs::read(to).expect("the file"), b"");
}

/// A file of several MiB, of no round length, is the same after its way in and out.
pub async fn a_file_comes_out_as_it_went_in(f: &BlobFixture) {
    let image = noise(5 * 1024 * 1024 + 4_321);
    let (from, to) = (f.local("in"), f.local("out"));
    std::fs::write(&from, &image).expect("a local file");
    let name = key("acme/u/e00000001/snap-000001-x.db");
    assert_eq!(f.store.put_if_absent(&name, Payload::File(from)).await.expect("a put"), Put::Created);
    assert_eq!(f.another.download(&name, &to).await.expect("a download"), Some(image.len() as u64));
    assert!(std::fs::read(to).expect("the file") == image, "the download differs");
    assert!(f.read(name.as_str()).await.expect("it") == image, "the get differs");
    assert_eq!(f.store.list(&prefix("acme/u/")).await.expect("a listing")[0].len, image.len() as u64);
}

/// A local file that cannot be read is the caller's error, by its path, and puts nothing.
pub async fn a_put_of_a_missing_file_puts_nothing(f: &BlobFixture) {
    let missing = f.local("missing");
    let error = f
        .store
        .put_if_absent(&key("a/1"), Payload::File(missing.clone()))
        .await
        .expect_err("there is no such file");
    assert!(matches!(&error, BlobError::Local { action: "read", path, .. } if *path == missing), "{error:?}");
    assert_eq!(error.code(), ErrorCode::LocalIo);
    assert_eq!(f.read("a/1").await, None);
    assert!(f.names("a/").await.is_empty());
}

/// Where there is no object, there is no file either.
pub async fn a_download_of_nothing_makes_no_file(f: &BlobFixture) {
    let to = f.local("out");
    assert_eq!(f.store.download(&key("a/1"), &to).await.expect("a download"), None);
    assert!(!to.exists());
}

/// A download takes a path that is free, and leaves alone what is there.
pub async fn a_download_never_overwrites(f: &BlobFixture) {
    f.put("a/1", "object").await;
    let to = f.local("out");
    std::fs::write(&to, "mine").expect("a local file");
    let error = f.store.download(&key("a/1"), &to).await.expect_err("the path is taken");
    assert!(matches!(&error, BlobError::Local { action: "write", path, .. } if *path == to), "{error:?}");
    assert_eq!(std::fs::read(&to).expect("the file"), b"mine");
    let nowhere = f.local("no such directory").join("out");
    let error = f.store.download(&key("a/1"), &nowhere).await.expect_err("there is no such directory");
    assert_eq!(error.code(), ErrorCode::LocalIo);
}

/// The order is that of the whole keys as bytes (`-` before `.` before `/` before `0`), not that of a walk.
pub async fn a_listing_is_in_the_order_of_the_keys(f: &BlobFixture) {
    let ordered =
        ["t/b-x", "t/b.json", "t/b/c", "t/b/c.d/e", "t/b0", "t/e00000002/base.json", "t/e00000010/x"];
    for name in ordered.iter().rev() {
        assert_eq!(f.put(name, *name).await, Put::Created);
    }
    let entries = f.store.list(&prefix("t/")).await.expect("a listing");
    let expected: Vec<_> =
        ordered.iter().map(|name| BlobEntry { key: key(name), len: name.len() as u64 }).collect();
    assert_eq!(entries, expected);
}

/// A listing shows what lies under its prefix and nothing beside it.
pub async fn a_listing_stays_under_its_prefix(f: &BlobFixture) {
    for name in ["acme/u/1", "acme/u/deep/er/2", "acme/u2/3", "acme2/u/4", "acme-x/5", "_floors/acme/u/6"] {
        f.put(name, "x").await;
    }
    assert_eq!(f.names("acme/u/").await, ["acme/u/1", "acme/u/deep/er/2"]);
    assert_eq!(f.names("acme/").await, ["acme/u/1", "acme/u/deep/er/2", "acme/u2/3"]);
    assert_eq!(f.names("_floors/acme/u/").await, ["_floors/acme/u/6"]);
}

/// A listing that begins after a put or delete knows of it, whoever made it.
pub async fn a_listing_follows_puts_and_deletes(f: &BlobFixture) {
    put(&f.another, "a/1", "x").await;
    f.put("a/2", "x").await;
    assert_eq!(f.names("a/").await, ["a/1", "a/2"]);
    assert!(f.another.delete(&key("a/2")).await.expect("a delete"));
    assert_eq!(f.names("a/").await, ["a/1"]);
    assert_eq!(f.another.delete_prefix(&prefix("a/")).await.expect("a delete"), 1);
    assert!(f.names("a/").await.is_empty());
    assert_eq!(f.read("a/1").await, None);
}

/// However many pages it takes: 5,000 objects are listed, and deleted, by one call each.
pub async fn five_thousand_objects_are_one_listing(f: &BlobFixture) {
    let mut names: Vec<_> = (0..5_000).map(|n| format!("many/{}/{n:05}", n % 7)).collect();
    let puts = stream::iter(names.clone()).map(|name| {
        let store = Arc::clone(&f.store);
        async move { store.put_if_absent(&key(&name), Payload::Bytes(Bytes::from_static(b"x"))).await }
    });
    let answers: Vec<_> = puts.buffer_unordered(32).try_collect().await.expect("the puts");
    assert!(answers.iter().all(|put| *put == Put::Created));
    names.sort_unstable();
    assert!(f.names("many/").await == names, "the listing is not what was put");
    assert_eq!(f.store.delete_prefix(&prefix("many/")).await.expect("a delete"), 5_000);
    assert!(f.names("many/").await.is_empty());
}

/// A delete answers whether there was something to delete.
pub async fn a_delete_says_whether_there_was_one(f: &BlobFixture) {
    f.put("a/1", "x").await;
    f.put("a/2", "x").await;
    assert!(f.store.delete(&key("a/1")).await.expect("a delete"));
    assert!(!f.another.delete(&key("a/1")).await.expect("a delete"));
    assert_eq!(f.read("a/1").await, None);
    assert_eq!(f.names("a/").await, ["a/2"]);
}

/// Contract row P2, as far as a store answers for it: a prefix is a segment's end, and its neighbour stays.
pub async fn deleting_a_prefix_counts_and_stays_on_its_segment(f: &BlobFixture) {
    assert!("acme".parse::<BlobPrefix>().is_err());
    for name in ["acme/u/1", "acme/u/2", "acme/u/deep/3", "acme/v/4", "acme2/u/5", "acme-2/6"] {
        f.put(name, "x").await;
    }
    assert_eq!(f.store.delete_prefix(&prefix("acme/u/")).await.expect("a delete"), 3);
    assert_eq!(f.names("acme/").await, ["acme/v/4"]);
    assert_eq!(f.store.delete_prefix(&prefix("acme/")).await.expect("a delete"), 1);
    assert_eq!(f.store.delete_prefix(&prefix("acme/")).await.expect("a delete"), 0);
    assert_eq!(f.names("acme2/").await, ["acme2/u/5"]);
    assert_eq!(f.names("acme-2/").await, ["acme-2/6"]);
}

/// A deleted name is free again.
pub async fn a_deleted_name_can_be_put_again(f: &BlobFixture) {
    f.put("a/b/1", "first").await;
    f.store.delete(&key("a/b/1")).await.expect("a delete");
    assert_eq!(f.put("a/b/1", "second").await, Put::Created);
    f.store.delete_prefix(&prefix("a/")).await.expect("a delete");
    assert_eq!(put(&f.another, "a/b/1", "third").await, Put::Created);
    assert_eq!(f.read("a/b/1").await.expect("the third"), "third");
    // The end of one name may become the middle of another once it is free.
    f.store.delete(&key("a/b/1")).await.expect("a delete");
    assert_eq!(f.put("a/b", "object").await, Put::Created);
    f.store.delete(&key("a/b")).await.expect("a delete");
    assert_eq!(f.put("a/b/1", "fourth").await, Put::Created);
}

/// Puts and deletes of the same prefix at the same time: every put succeeds, and what was put was deleted once or is still there.
pub async fn puts_beside_deletes_are_neither_lost_nor_counted_twice(f: &BlobFixture) {
    const PUTS: u64 = 200;

    let writers = (0..2).map(|writer| {
        let store = if writer == 0 { Arc::clone(&f.store) } else { Arc::clone(&f.another) };
        tokio::spawn(async move {
            for n in 0..PUTS {
                let name = format!("t/e{:08}/{writer}-{n}", n % 3);
                assert_eq!(put(&store, &name, "whole").await, Put::Created, "{name}");
            }
        })
    });
    let writers = join_all(writers);
    tokio::pin!(writers);
    let mut deleted = 0;
    loop {
        let (all, some) = (prefix("t/"), prefix("t/e00000001/"));
        let (one, two) = tokio::join!(f.store.delete_prefix(&all), f.another.delete_prefix(&some));
        deleted += one.expect("a delete") + two.expect("a delete");
        if let Some(ended) = futures::FutureExt::now_or_never(&mut writers) {
            for writer in ended {
                writer.expect("a writer");
            }
            break;
        }
    }
    let left = f.names("t/").await;
    for name in &left {
        assert_eq!(f.read(name).await.expect("what is listed"), "whole");
    }
    assert_eq!(deleted + left.len() as u64, 2 * PUTS);
    assert_eq!(f.store.delete_prefix(&prefix("t/")).await.expect("a delete"), left.len() as u64);
}

/// No reader and no listing sees a part of an object while it is being put.
pub async fn an_object_is_whole_or_not_there(f: &BlobFixture) {
    let image = noise(2 * 1024 * 1024 + 1);
    let file = f.local("image");
    std::fs::write(&file, &image).expect("a local file");
    for round in 0..4 {
        let name = key(&format!("t/{round}"));
        let (store, put_name, file) = (Arc::clone(&f.store), name.clone(), file.clone());
        let put = tokio::spawn(async move { store.put_if_absent(&put_name, Payload::File(file)).await });
        loop {
            let is_over = put.is_finished();
            let entries = f.another.list(&prefix("t/")).await.expect("a listing");
            assert!(entries.iter().all(|entry| entry.len == image.len() as u64), "{entries:?}");
            let body = f.another.get(&name, LEN_MAX).await.expect("a get");
            assert!(body.as_ref().is_none_or(|body| *body == image), "half an object");
            if is_over {
                assert!(body.is_some(), "an object that was put is not there");
                break;
            }
        }
        assert_eq!(put.await.expect("a writer").expect("a put"), Put::Created);
    }
}

/// A test per behaviour of [`conformance::blob`](crate::conformance::blob), each with what `async fn $fixture() -> BlobFixture` gives.
#[macro_export]
macro_rules! blob_conformance {
    ($fixture:path) => {
        $crate::blob_conformance!(@each $fixture:
            a_put_creates_what_a_get_reads,
            a_put_of_a_taken_name_changes_nothing,
            of_racing_puts_exactly_one_wins,
            what_was_never_put_is_absent,
            an_object_past_the_callers_bound_is_not_read,
            an_empty_object_is_an_object,
            a_file_comes_out_as_it_went_in,
            a_put_of_a_missing_file_puts_nothing,
            a_download_of_nothing_makes_no_file,
            a_download_never_overwrites,
            a_listing_is_in_the_order_of_the_keys,
            a_listing_stays_under_its_prefix,
            a_listing_follows_puts_and_deletes,
            five_thousand_objects_are_one_listing,
            a_delete_says_whether_there_was_one,
            deleting_a_prefix_counts_and_stays_on_its_segment,
            a_deleted_name_can_be_put_again,
            puts_beside_deletes_are_neither_lost_nor_counted_twice,
            an_object_is_whole_or_not_there,
        );
    };
    (@each $fixture:path: $($behaviour:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $behaviour() {
            $crate::conformance::blob::$behaviour(&$fixture().await).await;
        }
    )*};
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_macro_names_every_behaviour() {
        let source = include_str!("blob.rs");
        let (behaviours, listed) = source.split_once("macro_rules!").unwrap();
        let names: Vec<_> =
            behaviours.split("\npub async fn ").skip(1).filter_map(|rest| rest.split('(').next()).collect();
        assert!(names.len() > 10);
        for name in names {
            assert!(listed.contains(&format!(" {name},\n")), "{name}");
        }
    }
}
