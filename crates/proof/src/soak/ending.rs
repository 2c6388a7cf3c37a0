//! The end: whatever is wrong ends, everything is closed, read once more, and looked for what stayed behind.

use std::{fs, path::Path, time::Duration};

use leasehold_blob::BlobPrefix;
use leasehold_lease::TokioTimer;
use leasehold_tenure::tenant_root;
use leasehold_testkit::Pair;
use leasehold_types::{LeaseKey, Timer as _};
use tokio::task::JoinHandle;

use super::{
    book::Forget,
    caller::Caller,
    footprint::Footprint,
    run::{SLICE, Soak},
    time::{ReplicaTimer, Time},
};
use crate::ProofError;

/// How many slices of time something may take that has an end.
const SLICES_MAX: usize = 4_000;
/// How often a forget that was not settled is asked for again.
const FORGETS_MAX: usize = 20;
/// When forgotten tenants are looked at again, after a ttl (design.md, section 4).
const RECHECKS: [Duration; 3] =
    [Duration::from_secs(60), Duration::from_secs(3_600), Duration::from_secs(86_400)];
/// How many rounds of housekeeping find everything that is due: each takes a hundred.
const ROUNDS: usize = 4;
/// How long a connection may take to be gone that nobody has any more.
const DESCRIPTORS_WITHIN: Duration = Duration::from_secs(20);

impl<P: Pair> Soak<P> {
    /// Ends everything and looks at what is left of it.
    pub(super) async fn wind_down(&mut self) {
        self.book.trace.line("the end".into());
        for ending in self.faults.due(u64::MAX - 1) {
            self.end(ending).await;
        }
        for _ in 0..SLICES_MAX {
            self.begin_anew();
            if self.book.in_flight() == 0 && self.replicas.iter().all(|replica| replica.router().is_some()) {
                break;
            }
            self.pass(SLICE).await;
        }
        let left = self.book.in_flight();
        if left > 0 {
            return self.book.find(None, format!("{left} calls never came to an end"));
        }
        self.settle_forgets().await;
        self.close_all().await;
        self.audit().await;
        if self.book.finding().is_none() {
            self.look_again().await;
        }
    }

    /// The outcome of a task, while time passes.
    async fn finish<T>(&mut self, what: &str, task: JoinHandle<T>) -> Option<T> {
        for _ in 0..SLICES_MAX {
            if task.is_finished() {
                return match task.await {
                    Ok(outcome) => Some(outcome),
                    Err(error) => {
                        self.book.find(None, format!("{what} did not end by itself: {error}"));
                        None
                    }
                };
            }
            self.pass(SLICE).await;
        }
        self.book.find(None, format!("{what} never came to an end"));
        None
    }

    /// What was not settled is asked for until it is.
    async fn settle_forgets(&mut self) {
        for tries in 0..FORGETS_MAX {
            let unsettled = self.book.standings();
            let unsettled = unsettled.into_iter().filter(|(_, standing)| standing.forget != Forget::No);
            for (count, (key, _)) in unsettled.enumerate() {
                let at = (tries + count) % self.replicas.len();
                let Some(router) = self.replicas[at].router().cloned() else { continue };
                let caller = Caller { book: self.book.clone(), router, at, key, call: 0 };
                if let Some(before) = caller.begins_forget() {
                    let task = tokio::spawn(caller.forget(before, self.book.under_way()));
                    self.finish("a forget", task).await;
                }
            }
            self.pass(self.rhythm.ttl / 4).await;
        }
        for (key, standing) in self.book.standings() {
            if standing.forget != Forget::No {
                self.book.find(Some(&key), "it cannot be forgotten although nothing is wrong any more");
            }
        }
    }

    /// Nothing is wrong any more, so everything is handed off.
    async fn close_all(&mut self) {
        self.pass(self.rhythm.ttl * 2).await;
        for at in 0..self.replicas.len() {
            let Some(router) = self.replicas[at].router().cloned() else { continue };
            let task = tokio::spawn(async move { router.close().await });
            if let Some(kept) = self.finish("a close", task).await {
                for key in kept {
                    self.book.find(Some(&key), format!("r{at} could not hand it off"));
                }
            }
        }
    }

    /// Somebody new opens every tenant and reads it.
    async fn audit(&mut self) {
        if let Err(error) = self.add_replica() {
            return self.book.find(None, error);
        }
        let at = self.replicas.len() - 1;
        let Some(router) = self.replicas[at].router().cloned() else { return };
        for (key, _) in self.book.standings() {
            let row = match self.pair.leases().read(&key).await {
                Ok(row) => row,
                Err(error) => return self.book.find(Some(&key), error),
            };
            if row.is_none_or(|row| row.is_forgotten()) {
                continue;
            }
            let caller =
                Caller { book: self.book.clone(), router: router.clone(), at, key: key.clone(), call: 0 };
            let task = tokio::spawn(async move {
                let handle = caller.open().await?;
                Some(caller.read_from(&handle).await)
            });
            match self.finish("an audit", task).await.flatten() {
                Some(Ok(_)) => self.book.count("history at the end"),
                Some(Err(error)) => self.book.find(Some(&key), format!("it cannot be read: {error}")),
                None => self.book.find(Some(&key), "it cannot be opened although everybody closed it"),
            }
        }
        let task = tokio::spawn(async move { router.close().await });
        for key in self.finish("the last close", task).await.unwrap_or_default() {
            self.book.find(Some(&key), "the last one could not hand it off");
        }
    }

    /// Whoever keeps house looks at forgotten tenants, and then so does this.
    async fn look_again(&mut self) {
        if self.time.is_by_hand() {
            for wait in RECHECKS {
                self.pass_at_once(self.rhythm.ttl + wait).await;
                for _ in 0..ROUNDS {
                    self.keep_house().await;
                }
            }
        } else {
            self.keep_house().await;
        }
        for (key, _) in self.book.standings() {
            let is_forgotten = match self.pair.leases().read(&key).await {
                Ok(row) => row.is_some_and(|row| row.is_forgotten()),
                Err(error) => return self.book.find(Some(&key), error),
            };
            if is_forgotten {
                self.look_for(&key).await;
            }
        }
        for replica in &self.replicas {
            for path in scratch_of(&replica.state_root) {
                self.book.find(None, format!("{} left {}", replica.id, relative(self.dir.path(), &path)));
            }
        }
    }

    async fn keep_house(&mut self) {
        for at in 0..self.replicas.len() {
            let Some(router) = self.replicas[at].router().cloned() else { continue };
            let task = tokio::spawn(async move { router.keep_house().await });
            if let Some(kept) = self.finish("housekeeping", task).await {
                self.book.add("history forgotten and looked at again", kept.rechecked);
                self.book.add("history objects of late uploads deleted", kept.objects_deleted);
                self.book.add("history local roots removed", kept.local_removed);
            }
        }
    }

    /// Nothing of a forgotten tenant is in the store or on a disk. Where time is real nobody waits a day for late uploads to be
    /// found, so that is asked only where it is not.
    async fn look_for(&self, key: &LeaseKey) {
        if self.time.is_by_hand() {
            match self.pair.blobs().list(&BlobPrefix::of_tenant(key)).await {
                Ok(entries) => {
                    for entry in entries {
                        self.book.find(Some(key), format!("forgotten, and {} is there", entry.key));
                    }
                }
                Err(error) => self.book.find(Some(key), error),
            }
        }
        for replica in &self.replicas {
            if tenant_root(&replica.state_root, key).exists() {
                self.book.find(Some(key), format!("forgotten, and {} has a directory of it", replica.id));
            }
        }
        self.book.count("history forgotten and nothing left");
    }

    /// Lets go of everything, and answers what this process still has of it.
    pub(super) async fn vanish(mut self, before: &Footprint, tasks: usize) -> Result<Footprint, ProofError> {
        let (book, time) = (self.book.clone(), self.time.clone());
        let has_failed = book.finding().is_some();
        let timers: Vec<ReplicaTimer> =
            self.replicas.drain(..).map(|replica| replica.timer.clone()).collect();
        if let Time::ByHand { idle, .. } = &time {
            // What looks every minute finds that its router is gone.
            for _ in 0..3 {
                for timer in &timers {
                    timer.elapse(Duration::from_secs(61));
                }
                idle.until_idle().await;
            }
        }
        drop(self);
        if has_failed {
            return Ok(Footprint::now()?);
        }
        let mut waited = Duration::ZERO;
        loop {
            let now = Footprint::now()?;
            let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            let asleep: usize = timers.iter().map(ReplicaTimer::sleepers).sum();
            if now.descriptors <= before.descriptors && alive <= tasks && asleep == 0 {
                return Ok(now);
            }
            if time.is_by_hand() || waited >= DESCRIPTORS_WITHIN {
                book.find(
                    None,
                    format!(
                        "of {} descriptors and {tasks} tasks at the beginning there are {}, {alive} and {asleep} timers at the end",
                        before.descriptors, now.descriptors
                    ),
                );
                return Ok(now);
            }
            TokioTimer.sleep(SLICE).await;
            waited += SLICE;
        }
    }
}

/// Files in the scratch directories below a state root.
fn scratch_of(state_root: &Path) -> Vec<std::path::PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![state_root.to_path_buf()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
            } else if dir.ends_with("scratch") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn relative(base: &Path, path: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}
