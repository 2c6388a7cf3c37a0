//! Since when something is written and not published.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    time::Duration,
};

use leasehold_types::Moment;

/// Moments as nanoseconds; 0 is none. Written by whoever wrote and by the one upload that is under way.
#[derive(Debug, Default)]
pub(crate) struct Unpublished {
    /// From where the cadence counts: the first write after an upload, or the end of one that left something behind.
    since: AtomicU64,
    /// The oldest write that no published image has. A failed upload leaves it where it was.
    oldest: AtomicU64,
    /// When the last image began to be taken: what is written later is not in it.
    image: AtomicU64,
}

impl Unpublished {
    /// A ledger that has something unpublished was written to. Answers whether it is the first write to be so.
    pub(crate) fn wrote(&self, now: Moment) -> bool {
        // Between the commit and the look at `since`, as in `upload_ended` the other way about: one of the two sees the other.
        fence(SeqCst);
        set_first(&self.oldest, now);
        set_first(&self.since, now)
    }

    pub(crate) fn image_begins(&self, now: Moment) {
        self.image.store(nanos(now), Relaxed);
    }

    /// An upload ended. Answers what `is_dirty` says, which is asked only after what was noted before is taken away: a write that comes
    /// meanwhile is seen here, or sees that nothing is noted.
    pub(crate) fn upload_ended(&self, now: Moment, is_published: bool, is_dirty: impl Fn() -> bool) -> bool {
        self.since.store(0, Relaxed);
        if is_published {
            self.oldest.store(0, Relaxed);
        }
        fence(SeqCst);
        let dirty = is_dirty();
        if dirty {
            set_first(&self.since, now);
            set_first(&self.oldest, Moment::from_nanos(self.image.load(Relaxed)));
        }
        dirty
    }

    /// From where the cadence counts; `None` while nothing is unpublished.
    pub(crate) fn since(&self) -> Option<Moment> {
        moment(&self.since)
    }

    /// For how long the oldest write that no published image has is waiting.
    pub(crate) fn waiting_for(&self, now: Moment) -> Duration {
        moment(&self.oldest).map_or(Duration::ZERO, |oldest| now.since(oldest))
    }
}

fn nanos(moment: Moment) -> u64 {
    moment.as_nanos().max(1)
}

fn moment(of: &AtomicU64) -> Option<Moment> {
    Some(of.load(Relaxed)).filter(|nanos| *nanos > 0).map(Moment::from_nanos)
}

/// Sets what is none, and answers whether it was.
fn set_first(of: &AtomicU64, now: Moment) -> bool {
    of.load(Relaxed) == 0 && of.compare_exchange(0, nanos(now), Relaxed, Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn waits(unpublished: &Unpublished, now: u64) -> u64 {
        unpublished.waiting_for(at(now)).as_secs()
    }

    #[test]
    fn the_first_write_is_what_both_count_from() {
        let unpublished = Unpublished::default();
        assert_eq!((unpublished.since(), waits(&unpublished, 9)), (None, 0));
        assert!(unpublished.wrote(at(10)));
        assert!(!unpublished.wrote(at(11)));
        assert_eq!((unpublished.since(), waits(&unpublished, 15)), (Some(at(10)), 5));
    }

    #[test]
    fn a_failed_upload_begins_the_cadence_anew_and_nothing_else() {
        let unpublished = Unpublished::default();
        unpublished.wrote(at(10));
        unpublished.image_begins(at(20));
        assert!(unpublished.upload_ended(at(30), false, || true));
        assert_eq!((unpublished.since(), waits(&unpublished, 40)), (Some(at(30)), 30));
    }

    #[test]
    fn what_was_written_beside_an_image_waits_from_the_image_on() {
        let unpublished = Unpublished::default();
        unpublished.wrote(at(10));
        unpublished.image_begins(at(20));
        unpublished.wrote(at(25));
        assert!(unpublished.upload_ended(at(30), true, || true));
        assert_eq!((unpublished.since(), waits(&unpublished, 40)), (Some(at(30)), 20));
        unpublished.image_begins(at(50));
        assert!(!unpublished.upload_ended(at(60), true, || false));
        assert_eq!((unpublished.since(), waits(&unpublished, 70)), (None, 0));
    }

    #[test]
    fn a_write_while_an_upload_is_settled_is_not_forgotten() {
        let unpublished = Unpublished::default();
        unpublished.wrote(at(10));
        unpublished.image_begins(at(20));
        // It comes after the upload found nothing, and still finds that it is the first.
        let wrote = || unpublished.wrote(at(29));
        assert!(!unpublished.upload_ended(at(30), true, || {
            assert!(wrote());
            false
        }));
        assert_eq!((unpublished.since(), waits(&unpublished, 30)), (Some(at(29)), 1));
    }
}
