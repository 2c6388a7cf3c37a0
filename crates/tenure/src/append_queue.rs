//! Group commit: callers that append at the same time share a transaction.
//!
//! There is no thread per tenant. The first caller to come starts a round; who comes while it runs is in the next one, which the
//! same thread does before it goes. So a lone caller waits for nobody, and many wait for one commit.

use std::sync::{Arc, Mutex, PoisonError};

use leasehold_ledger::{Appended, NewEvent};
use tokio::sync::oneshot;

use crate::{TenureError, gate::Work, tenure::Tenure};

/// How many callers may wait at a time.
const WAITING_MAX: usize = 4_096;
/// How many callers share a transaction at the most.
const ROUND_MAX: usize = 512;

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
    running: bool,
}

/// The callers of one tenant that wait for a commit.
#[derive(Default)]
pub(crate) struct AppendQueue(Mutex<Queue>);

impl Tenure {
    /// Appends a batch, atomically, in a transaction that it may share with others.
    pub(crate) async fn append(self: Arc<Self>, events: Vec<NewEvent>) -> Result<Vec<Appended>, TenureError> {
        let work = self.gate.enter().map_err(|refusal| self.refused(refusal))?;
        self.called();
        let (told, answer) = oneshot::channel();
        let starts = {
            let mut queue = self.appends.0.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.waiting.len() >= WAITING_MAX {
                let key = self.key.clone();
                return Err(TenureError::Overloaded {
                    key,
                    what: "the bound on appends that wait",
                    limit: WAITING_MAX,
                });
            }
            queue.waiting.push(Batch { events, work, told });
            !std::mem::replace(&mut queue.running, true)
        };
        if starts {
            let me = Arc::clone(&self);
            self.shared.runtime.spawn_blocking(move || me.commit_rounds());
        }
        answer.await.unwrap_or_else(|_| Err(TenureError::TaskEnded { key: self.key.clone() }))
    }

    fn commit_rounds(&self) {
        /// Lets the next caller start again, also when a round panicked.
        struct Running<'a>(&'a AppendQueue);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    let mut queue = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
                    queue.running = false;
                    // Dropped, they learn that no answer will come.
                    queue.waiting.clear();
                }
            }
        }
        let _running = Running(&self.appends);
        loop {
            let round: Vec<Batch> = {
                let mut queue = self.appends.0.lock().unwrap_or_else(PoisonError::into_inner);
                let count = queue.waiting.len().min(ROUND_MAX);
                if count == 0 {
                    queue.running = false;
                    return;
                }
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
