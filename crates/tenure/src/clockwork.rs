//! Everything of a serving tenure that comes with time: one task, one next wake.
//!
//! What is due is decided by a pure function of the clock's reading; the timer only says when to look again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::future::select;
use leasehold_types::{Act, Moment};

use crate::{
    contained::contained,
    steps::Cause,
    tenure::Tenure,
    vocabulary::{Event, LeaseState, Phase, Upload},
};

/// How long the write-ahead log may grow before a checkpoint is taken off the commit path.
pub(crate) const WAL_BYTES_CHECKPOINT: u64 = 4 << 20;
/// How long a failed upload is waited out at least, and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// A look at least this often, whatever else.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What a look at a tenure found.
#[derive(Clone, Copy, Debug)]
struct Look {
    now: Moment,
    serving: bool,
    held: bool,
    uploading: bool,
    deadline: Moment,
    dirty_since: Option<Moment>,
    unflushed_bytes: u64,
    wal_bytes: u64,
    in_flight: u32,
    last_call: Moment,
    failed_uploads: u32,
}

/// What is configured.
#[derive(Clone, Copy, Debug)]
struct Rhythm {
    snapshot_every: Duration,
    unflushed_bytes_max: u64,
    idle_after: Option<Duration>,
}

/// What is due now, and when to look again.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is due or not")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    lapse: bool,
    snapshot: bool,
    checkpoint: bool,
    handoff: bool,
    next: Duration,
}

fn due(look: &Look, rhythm: &Rhythm) -> Due {
    let mut due = Due { lapse: false, snapshot: false, checkpoint: false, handoff: false, next: LOOK_AGAIN };
    let mut at = |moment: Moment| {
        let passed = moment <= look.now;
        if !passed {
            due.next = due.next.min(moment.since(look.now));
        }
        passed
    };
    let lapse = look.held && at(look.deadline);
    let able = look.serving && look.held && !lapse;
    let mut snapshot = false;
    if let Some(since) = look.dirty_since.filter(|_| able && !look.uploading) {
        // After a failure, which `since` counts from then, it is tried again at growing distances and not a whole cadence later: what a crash
        // would take has waited for one already.
        let (every, much_after) = match look.failed_uploads {
            0 => (rhythm.snapshot_every, Duration::ZERO),
            failed => {
                let retry = (RETRY_FIRST * 2_u32.saturating_pow(failed.min(7) - 1)).min(RETRY_MAX);
                (retry, retry)
            }
        };
        let much = rhythm.unflushed_bytes_max > 0 && look.unflushed_bytes >= rhythm.unflushed_bytes_max;
        let timed = !rhythm.snapshot_every.is_zero() && at(since.plus(every));
        snapshot = timed || (much && at(since.plus(much_after)));
    }
    let handoff = match rhythm.idle_after {
        Some(after) if able && look.in_flight == 0 => at(look.last_call.plus(after)),
        _ => false,
    };
    let checkpoint = able && !look.uploading && look.wal_bytes >= WAL_BYTES_CHECKPOINT;
    Due { lapse, snapshot, checkpoint, handoff, next: due.next }
}

impl Tenure {
    /// Runs until the tenure is over. Begun again after a panic: what is served is published, lapses and is handed off in its time.
    pub(crate) async fn clockwork(self: Arc<Self>) {
        while contained(Arc::clone(&self).keep_time()).await.is_none() {
            tracing::error!(key = %self.key, "what comes with time panicked and is begun again");
            self.shared.backends.timer.sleep(RETRY_FIRST).await;
        }
    }

    async fn keep_time(self: Arc<Self>) {
        let options = &self.shared.options;
        let rhythm = Rhythm {
            // Jittered once per tenure, so that what opened together does not upload together.
            snapshot_every: self.shared.backends.entropy.jittered(options.snapshot_every),
            unflushed_bytes_max: options.unflushed_bytes_max,
            idle_after: options.idle_after,
        };
        loop {
            let state = self.state();
            if state.phase == Phase::Released {
                return;
            }
            let Ok(ledger) = self.ledger() else { return };
            let look = Look {
                now: self.now(),
                serving: state.phase == Phase::Serving,
                held: state.lease == LeaseState::Held,
                uploading: state.upload != Upload::Idle,
                deadline: self.gate.deadline(),
                dirty_since: self.unpublished.since(),
                unflushed_bytes: ledger.unflushed_bytes(),
                wal_bytes: ledger.wal_bytes(),
                in_flight: self.gate.in_flight(),
                last_call: self.last_call(),
                failed_uploads: self.failed_uploads.load(Ordering::Acquire),
            };
            let due = due(&look, &rhythm);
            if due.lapse {
                self.feed(Event::DeadlinePassed, &Cause::default());
            }
            if due.snapshot {
                self.ask(Event::SnapshotAsked { dirty: ledger.is_dirty() }, None);
            } else if due.checkpoint {
                let ledger = Arc::clone(&ledger);
                let taken = self.blocking(move || ledger.checkpoint());
                if let Ok(Err(error)) = self.around(Act::LedgerCheckpoint, taken).await {
                    tracing::warn!(key = %self.key, %error, "a checkpoint failed");
                }
            }
            if due.handoff {
                ledger.close_idle_readers();
                self.ask(Event::HandoffAsked, None);
            }
            drop(ledger);
            // A spurious wake costs one look.
            let wait = self.shared.backends.timer.sleep(due.next.max(Duration::from_millis(1)));
            let woken = std::pin::pin!(self.wake.notified());
            let _ = select(wait, woken).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(seconds))
    }

    const RHYTHM: Rhythm = Rhythm {
        snapshot_every: Duration::from_secs(10),
        unflushed_bytes_max: 1_000,
        idle_after: Some(Duration::from_secs(40)),
    };

    fn look() -> Look {
        Look {
            now: at(100),
            serving: true,
            held: true,
            uploading: false,
            deadline: at(108),
            dirty_since: None,
            unflushed_bytes: 0,
            wal_bytes: 0,
            in_flight: 0,
            last_call: at(95),
            failed_uploads: 0,
        }
    }

    #[test]
    fn nothing_is_due_before_its_time_and_the_next_wake_is_the_earliest() {
        let quiet = due(&look(), &RHYTHM);
        assert_eq!(
            quiet,
            Due {
                lapse: false,
                snapshot: false,
                checkpoint: false,
                handoff: false,
                next: Duration::from_secs(8)
            }
        );
        let dirty = due(&Look { dirty_since: Some(at(93)), ..look() }, &RHYTHM);
        assert_eq!((dirty.snapshot, dirty.next), (false, Duration::from_secs(3)));
    }

    #[test]
    fn a_snapshot_is_due_by_time_or_by_bytes() {
        assert!(due(&Look { dirty_since: Some(at(90)), ..look() }, &RHYTHM).snapshot);
        let much = Look { dirty_since: Some(at(99)), unflushed_bytes: 1_000, ..look() };
        assert!(due(&much, &RHYTHM).snapshot);
        assert!(!due(&Look { uploading: true, ..much }, &RHYTHM).snapshot, "one upload at a time");
        assert!(!due(&Look { held: false, ..much }, &RHYTHM).snapshot, "a lapsed tenure publishes nothing");
        let on_demand = Rhythm { snapshot_every: Duration::ZERO, unflushed_bytes_max: 0, idle_after: None };
        assert!(
            !due(&Look { dirty_since: Some(at(1)), unflushed_bytes: u64::MAX, ..look() }, &on_demand)
                .snapshot
        );
    }

    #[test]
    fn failed_uploads_are_repeated_at_growing_distances() {
        let failing = |failed_uploads, now| Look {
            now: at(now),
            deadline: at(10_000),
            dirty_since: Some(at(100)),
            unflushed_bytes: 1_000,
            failed_uploads,
            ..look()
        };
        assert!(!due(&failing(1, 100), &RHYTHM).snapshot && due(&failing(1, 101), &RHYTHM).snapshot);
        assert!(!due(&failing(3, 103), &RHYTHM).snapshot && due(&failing(3, 104), &RHYTHM).snapshot);
        assert!(!due(&failing(99, 159), &RHYTHM).snapshot && due(&failing(99, 160), &RHYTHM).snapshot);
    }

    #[test]
    fn after_a_failed_upload_the_cadence_is_not_waited_for_again() {
        let failing = |failed_uploads, now| Look {
            now: at(now),
            deadline: at(10_000),
            dirty_since: Some(at(100)),
            unflushed_bytes: 1,
            failed_uploads,
            ..look()
        };
        assert!(!due(&failing(0, 109), &RHYTHM).snapshot && due(&failing(0, 110), &RHYTHM).snapshot);
        assert!(!due(&failing(1, 100), &RHYTHM).snapshot && due(&failing(1, 101), &RHYTHM).snapshot);
        assert!(!due(&failing(2, 101), &RHYTHM).snapshot && due(&failing(2, 102), &RHYTHM).snapshot);
        assert!(!due(&failing(99, 159), &RHYTHM).snapshot && due(&failing(99, 160), &RHYTHM).snapshot);
        let on_demand = Rhythm { snapshot_every: Duration::ZERO, ..RHYTHM };
        assert!(!due(&failing(1, 9_999), &on_demand).snapshot, "nobody asked for it");
    }

    #[test]
    fn a_lapse_is_told_once_and_stops_the_rest() {
        let lapsed =
            due(&Look { deadline: at(100), dirty_since: Some(at(1)), last_call: at(1), ..look() }, &RHYTHM);
        assert!(lapsed.lapse && !lapsed.snapshot && !lapsed.handoff);
        assert!(!due(&Look { deadline: at(100), held: false, ..look() }, &RHYTHM).lapse);
    }

    #[test]
    fn only_an_idle_tenant_is_handed_off() {
        assert!(due(&Look { last_call: at(60), ..look() }, &RHYTHM).handoff);
        assert!(!due(&Look { last_call: at(60), in_flight: 1, ..look() }, &RHYTHM).handoff);
        assert!(!due(&Look { last_call: at(61), ..look() }, &RHYTHM).handoff);
    }
}
