//! Group commit: callers that append at the same time share a transaction.
//!
//! There is no thread per tenant. The first caller to come starts a round; who comes while it runs is in the next one, which the
//! same thread does before it goes. So a lone caller waits for nobody, and many wait for one commit.
//!
//! A small batch of a caller that finds nobody at work is committed where the caller is: that takes a few microseconds and
//! waits for nothing (the file is a cache, nothing is synced), where a thread that may block costs two switches. It is not
//! done while callers crowd, since they gain more by sharing commits, nor where somebody else has the writer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_ledger::{Appended, NewEvent};
use tokio::sync::oneshot;

use crate::{TenureError, gate::Work, tenure::Tenure};

/// How many callers may wait at a time.
const WAITING_MAX: usize = 4_096;
/// How many callers share a transaction at the most.
const ROUND_MAX: usize = 512;
/// What is committed where its caller is, at the most: events, and bytes of their payloads.
const SMALL_EVENTS_MAX: usize = 8;
const SMALL_BYTES_MAX: usize = 16 * 1024;

type Told = oneshot::Sender<Result<Vec<Appended>, TenureError>>;

/// A caller's batch, with the permit that keeps the ledger open for it until it is answered.
struct Batch {
    events: Vec<NewEvent>,
    work: Work,
    told: Told,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Batch>,
    /// Whether somebody commits, here or on a thread that may block.
    running: bool,
    /// Whether callers met in the last round.
    crowded: bool,
}

/// The callers of one tenant that wait for a commit.
#[derive(Default)]
pub(crate) struct AppendQueue(Mutex<Queue>);

impl AppendQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the next caller start again when a commit panicked.
struct Running<'a>(&'a AppendQueue);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.lock();
            queue.running = false;
            // Dropped, they learn that no answer will come.
            queue.waiting.clear();
        }
    }
}

impl Tenure {
    /// Appends a batch, atomically, in a transaction that it may share with others.
    pub(crate) async fn append(self: Arc<Self>, events: Vec<NewEvent>) -> Result<Vec<Appended>, TenureError> {
        let work = self.gate.enter().map_err(|refusal| self.refused(refusal))?;
        self.called();
        let is_small = is_small(&events);
        let begins_alone = {
            let mut queue = self.appends.lock();
            let alone = is_small && !queue.running && !queue.crowded;
            queue.running |= alone;
            alone
        };
        if begins_alone && let Some(answer) = self.commit_alone(&events, &work) {
            return answer;
        }
        let (told, answer) = oneshot::channel();
        let (starts, is_full) = {
            let mut queue = self.appends.lock();
            let is_full = queue.waiting.len() >= WAITING_MAX;
            if !is_full {
                queue.waiting.push(Batch { events, work, told });
            }
            // Who began alone and found the writer taken has set it himself: others may wait for him by now.
            let idle = !is_full && !std::mem::replace(&mut queue.running, true);
            (idle || begins_alone, is_full)
        };
        if starts {
            self.commit_elsewhere();
        }
        if is_full {
            let key = self.key.clone();
            return Err(TenureError::Overloaded {
                key,
                what: "the bound on appends that wait",
                limit: WAITING_MAX,
            });
        }
        answer.await.unwrap_or_else(|_| Err(TenureError::TaskEnded { key: self.key.clone() }))
    }

    /// Commits a batch on this very thread. `None`: somebody else has the writer; nothing was done, and it is still this
    /// caller's turn to start a round.
    fn commit_alone(
        self: &Arc<Self>,
        events: &[NewEvent],
        work: &Work,
    ) -> Option<Result<Vec<Appended>, TenureError>> {
        let _running = Running(&self.appends);
        let answer = match self.ledger() {
            Ok(ledger) => {
                let answer = ledger.append_if_free(&work.gate(), events)?;
                if answer.is_ok() {
                    self.wrote(&ledger);
                }
                answer.map_err(|source| TenureError::ledger(&self.key, self.epoch(), source))
            }
            Err(error) => Err(error),
        };
        let others_wait = {
            let mut queue = self.appends.lock();
            queue.crowded = !queue.waiting.is_empty();
            queue.running = queue.crowded;
            queue.crowded
        };
        if others_wait {
            self.commit_elsewhere();
        }
        Some(answer)
    }

    /// Has whoever waits committed on a thread that may block.
    fn commit_elsewhere(self: &Arc<Self>) {
        let me = Arc::clone(self);
        self.shared.runtime.spawn_blocking(move || me.commit_rounds());
    }

    fn commit_rounds(&self) {
        let _running = Running(&self.appends);
        let mut most = 0;
        loop {
            let round: Vec<Batch> = {
                let mut queue = self.appends.lock();
                let count = queue.waiting.len().min(ROUND_MAX);
                if count == 0 {
                    queue.running = false;
                    queue.crowded = most > 1;
                    return;
                }
                most = most.max(count);
                queue.waiting.drain(..count).collect()
            };
            self.commit(round);
        }
    }

    fn commit(&self, round: Vec<Batch>) {
        let ledger = match self.ledger() {
            Ok(ledger) => ledger,
            Err(error) => {
                for batch in round {
                    let _ = batch.told.send(Err(error.clone()));
                }
                return;
            }
        };
        let Some(gate) = round.first().map(|batch| batch.work.gate()) else { return };
        let groups: Vec<&[NewEvent]> = round.iter().map(|batch| batch.events.as_slice()).collect();
        let answers = ledger.append_groups(&gate, &groups);
        drop(groups);
        if answers.iter().any(Result::is_ok) {
            self.wrote(&ledger);
        }
        let epoch = self.epoch();
        for (batch, answer) in round.into_iter().zip(answers) {
            // Who has stopped waiting need not be told.
            let _ = batch.told.send(answer.map_err(|source| TenureError::ledger(&self.key, epoch, source)));
            drop(batch.work);
        }
    }
}

fn is_small(events: &[NewEvent]) -> bool {
    let bytes = || events.iter().map(|event| event.payload.as_str().len()).sum::<usize>();
    events.len() <= SMALL_EVENTS_MAX && bytes() <= SMALL_BYTES_MAX
}
