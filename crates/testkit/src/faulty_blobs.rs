//! A blob store whose failures a test chooses.

use std::{
    collections::VecDeque,
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use leasehold_blob::{BlobEntry, BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};
use leasehold_types::Timer;
use tokio::sync::watch;

/// How many calls are remembered; older ones are forgotten.
const CALLS_MAX: usize = 10_000;

/// An operation of a blob store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlobOp {
    /// [`BlobStore::put_if_absent`].
    Put,
    /// [`BlobStore::get`].
    Get,
    /// [`BlobStore::download`].
    Download,
    /// [`BlobStore::list`].
    List,
    /// [`BlobStore::delete`].
    Delete,
    /// [`BlobStore::delete_prefix`].
    DeletePrefix,
}

type Matching = Box<dyn Fn(&str) -> bool + Send + Sync>;
/// A deferred put, once it has come.
type KeptPut = Option<(BlobKey, Payload)>;
type Hook = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// A wrapper that is a blob store itself and does what the one inside does, except where a test said otherwise.
///
/// Faults are told by operation and by the key or prefix. One-shot faults go to the first call that matches, in the order
/// in which they were asked for. A call meets them in this order: the outage, a hook, the outage again, a slow put, the outage
/// once more, then a failure or a deferral, the store inside, the loss of the answer. Clones share their faults.
#[derive(Clone, Debug)]
pub struct FaultyBlobs {
    inner: Arc<dyn BlobStore>,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Default)]
struct Faults {
    is_down: bool,
    hooks: Vec<(BlobOp, Matching, Hook)>,
    slow_puts: Vec<(Matching, Duration, Arc<dyn Timer>)>,
    failing_deletes: u32,
    lost_answers: Vec<(BlobOp, Matching)>,
    deferred_puts: Vec<(Matching, watch::Sender<KeptPut>)>,
    counts: [u64; 6],
    calls: VecDeque<(BlobOp, String)>,
}

/// An operation that waits in front of the store, or will. Dropping this lets it go.
#[derive(Debug)]
pub struct Held {
    arrived: watch::Receiver<bool>,
    released: watch::Sender<bool>,
}

/// A put whose caller is told an error and which takes effect when the test says so, or never.
#[derive(Debug)]
pub struct Deferred {
    inner: Arc<dyn BlobStore>,
    put: watch::Receiver<KeptPut>,
}

impl FaultyBlobs {
    /// `inner` without any fault yet.
    #[must_use]
    pub fn new(inner: Arc<dyn BlobStore>) -> Self {
        Self { inner, faults: Arc::default() }
    }

    /// Takes the store down (every operation that has not reached the store inside fails with an injected outage) or brings it
    /// back. What waits in a hook or a slow put when the store goes down, and goes on while it is down, fails too.
    pub fn down(&self, is_down: bool) {
        self.faults().is_down = is_down;
    }

    /// Runs `hook` before the next `op` whose key or prefix is `matching`; the operation waits for it.
    pub fn before_next(
        &self,
        op: BlobOp,
        matching: impl Fn(&str) -> bool + Send + Sync + 'static,
        hook: impl FnOnce() -> BoxFuture<'static, ()> + Send + 'static,
    ) {
        self.faults().hooks.push((op, Box::new(matching), Box::new(hook)));
    }

    /// Holds the next `op` whose key or prefix is `matching` in front of the store until it is released.
    #[must_use = "dropping it lets the operation go"]
    pub fn hold_next(&self, op: BlobOp, matching: impl Fn(&str) -> bool + Send + Sync + 'static) -> Held {
        let (arrive, arrived) = watch::channel(false);
        let (released, mut release) = watch::channel(false);
        self.before_next(op, matching, move || {
            Box::pin(async move {
                arrive.send_replace(true);
                // An error says that the holder was dropped, which releases as well.
                let _ = release.wait_for(|is_released| *is_released).await;
            })
        });
        Held { arrived, released }
    }

    /// Makes every put of a `matching` key take `delay` of `timer` before it reaches the store, until
    /// [`clear_slow_puts`](Self::clear_slow_puts).
    pub fn slow_puts(
        &self,
        matching: impl Fn(&str) -> bool + Send + Sync + 'static,
        delay: Duration,
        timer: Arc<dyn Timer>,
    ) {
        self.faults().slow_puts.push((Box::new(matching), delay, timer));
    }

    /// Ends what [`slow_puts`](Self::slow_puts) began, for puts that have not come yet.
    pub fn clear_slow_puts(&self) {
        self.faults().slow_puts.clear();
    }

    /// Makes the next delete, of an object or of a prefix, fail without deleting anything.
    pub fn fail_next_delete(&self) {
        self.faults().failing_deletes += 1;
    }

    /// Executes the next `op` whose key or prefix is `matching` and tells its caller an error.
    pub fn lose_next_answer(&self, op: BlobOp, matching: impl Fn(&str) -> bool + Send + Sync + 'static) {
        self.faults().lost_answers.push((op, Box::new(matching)));
    }

    /// Tells the caller of the next put of a `matching` key an error and keeps the put, to be executed later.
    #[must_use = "the put takes effect by `land` only"]
    pub fn defer_next_put(&self, matching: impl Fn(&str) -> bool + Send + Sync + 'static) -> Deferred {
        let (sender, put) = watch::channel(None);
        self.faults().deferred_puts.push((Box::new(matching), sender));
        Deferred { inner: Arc::clone(&self.inner), put }
    }

    /// How many calls of `op` there were, failed ones included.
    #[must_use]
    pub fn count(&self, op: BlobOp) -> u64 {
        self.faults().counts[op as usize]
    }

    /// The calls in the order in which they came, with their key or prefix: the last 10,000.
    #[must_use]
    pub fn calls(&self) -> Vec<(BlobOp, String)> {
        self.faults().calls.iter().cloned().collect()
    }

    /// Forgets the calls and counts so far.
    pub fn clear_calls(&self) {
        let mut faults = self.faults();
        faults.calls.clear();
        faults.counts = [0; 6];
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that a call meets before it reaches the store inside.
    async fn arrive(&self, op: BlobOp, name: &str) -> Result<(), BlobError> {
        let hook = {
            let mut faults = self.faults();
            faults.record(op, name);
            faults.refuse_if_down(op, name)?;
            faults.take_hook(op, name)
        };
        if let Some(hook) = hook {
            hook().await;
            self.faults().refuse_if_down(op, name)?;
        }
        if op == BlobOp::Put {
            let slow = self.faults().slowness_of(name);
            if let Some((delay, timer)) = slow {
                timer.sleep(delay).await;
                self.faults().refuse_if_down(op, name)?;
            }
        }
        if matches!(op, BlobOp::Delete | BlobOp::DeletePrefix) {
            let mut faults = self.faults();
            if faults.failing_deletes > 0 {
                faults.failing_deletes -= 1;
                return Err(injected(op, name, "injected failure: nothing was deleted"));
            }
        }
        Ok(())
    }

    /// What a call meets on its way back.
    fn depart<T>(&self, op: BlobOp, name: &str, answer: Result<T, BlobError>) -> Result<T, BlobError> {
        let mut faults = self.faults();
        let lost = faults.lost_answers.iter().position(|(lost, matching)| *lost == op && matching(name));
        match lost {
            Some(index) => {
                drop(faults.lost_answers.remove(index));
                Err(injected(op, name, "injected loss of the answer"))
            }
            None => answer,
        }
    }
}

impl Faults {
    fn record(&mut self, op: BlobOp, name: &str) {
        self.counts[op as usize] += 1;
        if self.calls.len() == CALLS_MAX {
            self.calls.pop_front();
        }
        self.calls.push_back((op, name.to_owned()));
    }

    fn refuse_if_down(&self, op: BlobOp, name: &str) -> Result<(), BlobError> {
        if self.is_down { Err(injected(op, name, "injected outage")) } else { Ok(()) }
    }

    fn take_hook(&mut self, op: BlobOp, name: &str) -> Option<Hook> {
        let index = self.hooks.iter().position(|(before, matching, _)| *before == op && matching(name))?;
        Some(self.hooks.remove(index).2)
    }

    fn slowness_of(&self, name: &str) -> Option<(Duration, Arc<dyn Timer>)> {
        let (_, delay, timer) = self.slow_puts.iter().find(|(matching, ..)| matching(name))?;
        Some((*delay, Arc::clone(timer)))
    }

    fn take_deferral(&mut self, name: &str) -> Option<watch::Sender<KeptPut>> {
        let index = self.deferred_puts.iter().position(|(matching, _)| matching(name))?;
        Some(self.deferred_puts.remove(index).1)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("is_down", &self.is_down)
            .field("hooks", &self.hooks.len())
            .field("slow_puts", &self.slow_puts.len())
            .field("failing_deletes", &self.failing_deletes)
            .field("lost_answers", &self.lost_answers.len())
            .field("deferred_puts", &self.deferred_puts.len())
            .finish_non_exhaustive()
    }
}

impl Held {
    /// Completes once the operation has arrived.
    ///
    /// # Panics
    /// If the store is dropped before.
    pub async fn reached(&self) {
        let mut arrived = self.arrived.clone();
        arrived
            .wait_for(|has_arrived| *has_arrived)
            .await
            .expect("the operation comes before its store is gone");
    }

    /// Whether the operation has arrived.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        *self.arrived.borrow()
    }

    /// Lets the operation go, or through when it comes.
    pub fn release(self) {
        self.released.send_replace(true);
    }
}

impl Deferred {
    /// Completes once the put has come and its caller was told an error.
    ///
    /// # Panics
    /// If the store is dropped before.
    pub async fn reached(&self) {
        let mut put = self.put.clone();
        put.wait_for(Option::is_some).await.expect("the put comes before its store is gone");
    }

    /// Whether the put has come.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.put.borrow().is_some()
    }

    /// Executes the put now, outage or not.
    ///
    /// # Panics
    /// If it has not come yet.
    pub async fn land(self) -> Result<Put, BlobError> {
        let put = self.put.borrow().clone();
        let (key, payload) = put.expect("a deferred put lands after it has come");
        self.inner.put_if_absent(&key, payload).await
    }
}

#[async_trait]
impl BlobStore for FaultyBlobs {
    async fn put_if_absent(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError> {
        let name = key.as_str();
        self.arrive(BlobOp::Put, name).await?;
        let deferral = self.faults().take_deferral(name);
        if let Some(deferral) = deferral {
            // Read now: the caller may remove its file once it has seen the error.
            let bytes = match payload {
                Payload::Bytes(bytes) => bytes,
                Payload::File(path) => match tokio::fs::read(&path).await {
                    Ok(bytes) => bytes.into(),
                    Err(source) => return Err(BlobError::Local { action: "read", path, source }),
                },
            };
            deferral.send_replace(Some((key.clone(), Payload::Bytes(bytes))));
            return Err(injected(BlobOp::Put, name, "injected delay: it may be executed later"));
        }
        let answer = self.inner.put_if_absent(key, payload).await;
        self.depart(BlobOp::Put, name, answer)
    }

    async fn get(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError> {
        self.arrive(BlobOp::Get, key.as_str()).await?;
        let answer = self.inner.get(key, len_max).await;
        self.depart(BlobOp::Get, key.as_str(), answer)
    }

    async fn download(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError> {
        self.arrive(BlobOp::Download, key.as_str()).await?;
        let answer = self.inner.download(key, to).await;
        let was_made = matches!(answer, Ok(Some(_)));
        let answer = self.depart(BlobOp::Download, key.as_str(), answer);
        if answer.is_err() && was_made {
            // The contract of a failed download.
            let removed = tokio::fs::remove_file(to).await;
            removed.map_err(|source| BlobError::Local { action: "remove", path: to.to_owned(), source })?;
        }
        answer
    }

    async fn list(&self, prefix: &BlobPrefix) -> Result<Vec<BlobEntry>, BlobError> {
        self.arrive(BlobOp::List, prefix.as_str()).await?;
        let answer = self.inner.list(prefix).await;
        self.depart(BlobOp::List, prefix.as_str(), answer)
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, BlobError> {
        self.arrive(BlobOp::Delete, key.as_str()).await?;
        let answer = self.inner.delete(key).await;
        self.depart(BlobOp::Delete, key.as_str(), answer)
    }

    async fn delete_prefix(&self, prefix: &BlobPrefix) -> Result<u64, BlobError> {
        self.arrive(BlobOp::DeletePrefix, prefix.as_str()).await?;
        let answer = self.inner.delete_prefix(prefix).await;
        self.depart(BlobOp::DeletePrefix, prefix.as_str(), answer)
    }
}

fn injected(op: BlobOp, name: &str, detail: &str) -> BlobError {
    let verb = match op {
        BlobOp::Put => "put",
        BlobOp::Get => "get",
        BlobOp::Download => "download",
        BlobOp::List => "list",
        BlobOp::Delete | BlobOp::DeletePrefix => "delete",
    };
    BlobError::Unavailable { action: format!("{verb} {name}"), detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use leasehold_blob::DirectoryStore;
    use tempfile::TempDir;

    use super::*;

    /// A timer whose waits end when the test says so.
    #[derive(Debug)]
    struct HeldTimer(watch::Receiver<bool>);

    impl Timer for HeldTimer {
        fn sleep(&self, _wait: Duration) -> BoxFuture<'static, ()> {
            let mut ended = self.0.clone();
            Box::pin(async move {
                ended.wait_for(|has_ended| *has_ended).await.unwrap();
            })
        }
    }

    struct Bench {
        inner: Arc<dyn BlobStore>,
        faulty: FaultyBlobs,
        _dir: TempDir,
    }

    fn bench() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let inner: Arc<dyn BlobStore> = Arc::new(DirectoryStore::open_without_sync(dir.path()).unwrap());
        Bench { faulty: FaultyBlobs::new(Arc::clone(&inner)), inner, _dir: dir }
    }

    fn key(name: &str) -> BlobKey {
        name.parse().unwrap()
    }

    impl Bench {
        fn start_put(&self, name: &str) -> tokio::task::JoinHandle<Result<Put, BlobError>> {
            let (store, key) = (self.faulty.clone(), key(name));
            tokio::spawn(async move { store.put_if_absent(&key, Bytes::from_static(b"x").into()).await })
        }

        async fn holds(&self, name: &str) -> bool {
            self.inner.get(&key(name), 10).await.unwrap().is_some()
        }
    }

    #[tokio::test]
    async fn an_outage_refuses_every_operation_until_it_ends() {
        let b = bench();
        b.faulty.down(true);
        let prefix = "a/".parse().unwrap();
        let error = b.start_put("a/1").await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "failed to put a/1 in the blob store: injected outage");
        assert!(b.faulty.get(&key("a/1"), 1).await.is_err());
        assert!(b.faulty.download(&key("a/1"), Path::new("/nowhere")).await.is_err());
        assert!(b.faulty.list(&prefix).await.is_err());
        assert!(b.faulty.delete(&key("a/1")).await.is_err());
        assert!(b.faulty.delete_prefix(&prefix).await.is_err());
        b.faulty.down(false);
        assert_eq!(b.start_put("a/1").await.unwrap().unwrap(), Put::Created);
    }

    #[tokio::test]
    async fn a_hook_runs_once_before_its_operation_and_may_take_the_store_down() {
        let b = bench();
        let store = b.faulty.clone();
        b.faulty.before_next(
            BlobOp::Put,
            |key| key == "a/1.json",
            move || async move { store.down(true) }.boxed(),
        );
        assert_eq!(b.start_put("a/1.db").await.unwrap().unwrap(), Put::Created);
        assert!(b.start_put("a/1.json").await.unwrap().unwrap_err().to_string().contains("injected outage"));
        b.faulty.down(false);
        assert_eq!(b.start_put("a/1.json").await.unwrap().unwrap(), Put::Created);
    }

    #[tokio::test]
    async fn a_held_operation_waits_in_front_of_the_store() {
        let b = bench();
        let held = b.faulty.hold_next(BlobOp::Put, |key| key == "a/1");
        assert!(!held.is_reached());
        let put = b.start_put("a/1");
        held.reached().await;
        assert!(held.is_reached() && !put.is_finished() && !b.holds("a/1").await);
        // Others pass meanwhile, of the same name too.
        assert_eq!(b.start_put("a/2").await.unwrap().unwrap(), Put::Created);
        assert_eq!(b.start_put("a/1").await.unwrap().unwrap(), Put::Created);
        held.release();
        assert_eq!(put.await.unwrap().unwrap(), Put::Exists);
    }

    #[tokio::test]
    async fn a_dropped_holder_holds_nothing() {
        let b = bench();
        drop(b.faulty.hold_next(BlobOp::Put, |_| true));
        assert_eq!(b.start_put("a/1").await.unwrap().unwrap(), Put::Created);
    }

    #[tokio::test]
    async fn a_slow_put_takes_its_time_before_it_is_executed() {
        let b = bench();
        let (end, ended) = watch::channel(false);
        b.faulty.slow_puts(|key| key == "a/1.db", Duration::from_secs(2), Arc::new(HeldTimer(ended)));
        let slow = b.start_put("a/1.db");
        assert_eq!(b.start_put("a/1.json").await.unwrap().unwrap(), Put::Created);
        assert!(!slow.is_finished() && !b.holds("a/1.db").await);
        end.send_replace(true);
        assert_eq!(slow.await.unwrap().unwrap(), Put::Created);
        end.send_replace(false);
        b.faulty.clear_slow_puts();
        assert_eq!(b.start_put("a/2.db").await.unwrap().unwrap(), Put::Created);
    }

    #[tokio::test]
    async fn a_failed_delete_deletes_nothing_and_is_the_only_one() {
        let b = bench();
        b.start_put("a/1").await.unwrap().unwrap();
        let prefix = "a/".parse().unwrap();
        b.faulty.fail_next_delete();
        assert!(b.faulty.delete_prefix(&prefix).await.unwrap_err().is_transient());
        assert!(b.holds("a/1").await);
        b.faulty.fail_next_delete();
        assert!(b.faulty.delete(&key("a/1")).await.is_err());
        assert!(b.holds("a/1").await);
        assert_eq!(b.faulty.delete_prefix(&prefix).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_lost_answer_is_of_an_executed_operation() {
        let b = bench();
        b.faulty.lose_next_answer(BlobOp::Put, |_| true);
        assert!(b.start_put("a/1").await.unwrap().is_err());
        assert!(b.holds("a/1").await);

        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("copy");
        b.faulty.lose_next_answer(BlobOp::Download, |_| true);
        assert!(b.faulty.download(&key("a/1"), &to).await.is_err());
        assert!(!to.exists());
        assert_eq!(b.faulty.download(&key("a/1"), &to).await.unwrap(), Some(1));
    }

    #[tokio::test]
    async fn a_deferred_put_lands_after_its_caller_saw_an_error() {
        let b = bench();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("image");
        std::fs::write(&file, "image").unwrap();
        let deferred = b.faulty.defer_next_put(|key| key == "a/1");
        assert!(b.faulty.put_if_absent(&key("a/1"), Payload::File(file.clone())).await.is_err());
        std::fs::remove_file(&file).unwrap();
        deferred.reached().await;
        assert!(!b.holds("a/1").await);
        assert_eq!(deferred.land().await.unwrap(), Put::Created);
        assert_eq!(b.inner.get(&key("a/1"), 10).await.unwrap().unwrap(), "image");
    }

    #[tokio::test]
    async fn calls_are_counted_and_told_in_order() {
        let b = bench();
        b.start_put("a/1").await.unwrap().unwrap();
        b.faulty.get(&key("a/1"), 10).await.unwrap();
        b.faulty.list(&"a/".parse().unwrap()).await.unwrap();
        assert_eq!(
            b.faulty.calls(),
            [(BlobOp::Put, "a/1".into()), (BlobOp::Get, "a/1".into()), (BlobOp::List, "a/".into())]
        );
        assert_eq!((b.faulty.count(BlobOp::Put), b.faulty.count(BlobOp::Delete)), (1, 0));
        b.faulty.clear_calls();
        assert_eq!((b.faulty.calls().len(), b.faulty.count(BlobOp::Put)), (0, 0));
    }
}
