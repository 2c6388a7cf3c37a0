//! How long a tail is allowed to be.
//!
//! What was acknowledged and is not published is the tail that a crash takes. It is bounded by `snapshot_every`, counted over the time
//! in which its replica could have published: neither paused nor without a store, and holding the lease. After an upload that failed
//! the cadence counts anew, at growing distances, which is added.

use std::{collections::BTreeMap, time::Duration};

use leasehold_types::{Epoch, LeaseKey};

/// How long a failed upload is waited out at least, and at most (`clockwork.rs` of the tenures).
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A tenure: which replica, which tenant, which epoch.
pub(super) type Where = (usize, LeaseKey, Epoch);

#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    /// How long it could have been published by now.
    age: Duration,
    /// How much longer than the cadence it may be, for uploads that failed.
    allowed: Duration,
    failures: u32,
    /// The last event in it.
    last_seq: u64,
}

/// The tails of all tenures.
#[derive(Debug, Default)]
pub(super) struct Tails {
    tails: BTreeMap<Where, Tail>,
    /// The oldest that any of them came to be, less what was added for failures.
    oldest: Duration,
}

impl Tails {
    pub(super) fn acknowledged(&mut self, at: Where, seq: u64) {
        let tail = self.tails.entry(at).or_default();
        tail.last_seq = tail.last_seq.max(seq);
    }

    pub(super) fn published(&mut self, at: &Where, seq: u64) {
        if let Some(tail) = self.tails.get_mut(at) {
            if tail.last_seq <= seq {
                self.tails.remove(at);
            } else {
                *tail = Tail { last_seq: tail.last_seq, ..Tail::default() };
            }
        }
    }

    /// An upload failed: the next one comes after a wait that grows. A whole `cadence` is allowed for it, the first waits being shorter.
    pub(super) fn upload_failed(&mut self, at: &Where, cadence: Duration) {
        if let Some(tail) = self.tails.get_mut(at) {
            tail.failures += 1;
            let wait = RETRY_FIRST * 2_u32.saturating_pow(tail.failures.min(7) - 1);
            tail.allowed += wait.min(RETRY_MAX).max(cadence);
        }
    }

    pub(super) fn ended(&mut self, at: &Where) {
        self.tails.remove(at);
    }

    /// Time has passed. Answers the first tail that is older than `limit` allows.
    pub(super) fn passed(
        &mut self,
        by: Duration,
        limit: Duration,
        could_publish: impl Fn(&Where) -> bool,
    ) -> Option<(Where, Duration)> {
        let mut too_old = None;
        for (at, tail) in self.tails.iter_mut().filter(|(at, _)| could_publish(at)) {
            tail.age += by;
            let age = tail.age.saturating_sub(tail.allowed);
            self.oldest = self.oldest.max(age);
            if age > limit && too_old.is_none() {
                too_old = Some((at.clone(), age));
            }
        }
        too_old
    }

    /// The oldest that there was.
    pub(super) const fn oldest(&self) -> Duration {
        self.oldest
    }
}
