//! What goes wrong, and when it ends.

use std::{collections::BTreeMap, sync::Arc};

use leasehold_testkit::{BlobOp, Deferred, LeaseOp};
use tokio::sync::watch;

use super::{action::Trouble, chance::Chance, replica::Replica};

/// Something that ends at a later step.
#[derive(Debug)]
pub(super) enum Ending {
    /// A pause of this replica.
    Pause(usize),
    /// An outage of its blob store.
    Blobs(usize),
    /// An outage of its lease store.
    Leases(usize),
    /// The slowness of its puts.
    SlowPuts(usize),
    /// A put that lands.
    Late(Deferred),
    /// Work that goes on.
    Work(watch::Sender<bool>),
}

/// What is under way, by the step at which it ends.
#[derive(Debug, Default)]
pub(super) struct Faults {
    ends: BTreeMap<u64, Vec<Ending>>,
}

/// Calls whose answer may be lost.
const LOST: [LeaseOp; 7] = [
    LeaseOp::Acquire,
    LeaseOp::Renew,
    LeaseOp::Release,
    LeaseOp::RaiseFloor,
    LeaseOp::StoreReceipt,
    LeaseOp::Read,
    LeaseOp::AdvanceEpoch,
];

impl Faults {
    pub(super) fn ends_at(&mut self, step: u64, ending: Ending) {
        self.ends.entry(step).or_default().push(ending);
    }

    /// What ends at `step`, or before.
    pub(super) fn due(&mut self, step: u64) -> Vec<Ending> {
        let later = self.ends.split_off(&(step + 1));
        std::mem::replace(&mut self.ends, later).into_values().flatten().collect()
    }

    /// Begins one. What is of one kind is on a replica once at a time.
    pub(super) fn begin(
        &mut self,
        trouble: Trouble,
        (now, until): (u64, u64),
        replica: &mut Replica,
        chance: &mut Chance,
    ) -> bool {
        let at = replica.at;
        let has = |ends: &BTreeMap<u64, Vec<Ending>>, is: fn(&Ending, usize) -> bool| {
            ends.range(now..).any(|(_, endings)| endings.iter().any(|ending| is(ending, at)))
        };
        let ending = match trouble {
            Trouble::Jump(by) => {
                replica.clock.jump(by);
                return true;
            }
            Trouble::Pause => {
                replica.is_paused = true;
                replica.timer.pause(true);
                Ending::Pause(at)
            }
            Trouble::BlobsAway if !has(&self.ends, |e, at| matches!(e, Ending::Blobs(a) if *a == at)) => {
                replica.blobs.down(true);
                Ending::Blobs(at)
            }
            Trouble::LeasesAway if !has(&self.ends, |e, at| matches!(e, Ending::Leases(a) if *a == at)) => {
                replica.leases.down(true);
                Ending::Leases(at)
            }
            Trouble::SlowPuts(by)
                if !has(&self.ends, |e, at| matches!(e, Ending::SlowPuts(a) if *a == at)) =>
            {
                replica.blobs.slow_puts(|_| true, by, Arc::new(replica.timer.clone()));
                Ending::SlowPuts(at)
            }
            Trouble::LosePut => {
                replica.blobs.lose_next_answer(BlobOp::Put, |_| true);
                return true;
            }
            Trouble::LoseLease => {
                replica.leases.lose_answer_of(chance.of(&LOST));
                return true;
            }
            Trouble::FailDelete => {
                replica.blobs.fail_next_delete();
                return true;
            }
            Trouble::LatePut => {
                let late = replica.blobs.defer_next_put(|name| name.contains("/snap-"));
                self.ends_at(until, Ending::Late(late));
                return true;
            }
            Trouble::BlobsAway | Trouble::LeasesAway | Trouble::SlowPuts(_) => return false,
        };
        replica.troubles += 1;
        self.ends_at(until, ending);
        true
    }
}

/// Ends one. Answers what happened, where that is worth a line.
pub(super) async fn end(ending: Ending, replicas: &mut [Replica]) -> Option<String> {
    let line = match &ending {
        Ending::Pause(at) => format!("r{at} goes on"),
        Ending::Blobs(at) => format!("r{at} has its blob store again"),
        Ending::Leases(at) => format!("r{at} has its lease store again"),
        Ending::SlowPuts(at) => format!("r{at} puts as fast as ever"),
        Ending::Late(_) | Ending::Work(_) => String::new(),
    };
    match ending {
        Ending::Pause(at) => {
            replicas[at].is_paused = false;
            replicas[at].timer.pause(false);
            replicas[at].troubles -= 1;
        }
        Ending::Blobs(at) => {
            replicas[at].blobs.down(false);
            replicas[at].troubles -= 1;
        }
        Ending::Leases(at) => {
            replicas[at].leases.down(false);
            replicas[at].troubles -= 1;
        }
        Ending::SlowPuts(at) => {
            replicas[at].blobs.clear_slow_puts();
            replicas[at].troubles -= 1;
        }
        Ending::Late(late) => {
            if !late.is_reached() {
                return Some("a late put never came".into());
            }
            return Some(match late.land().await {
                Ok(put) => format!("a late put lands: {put:?}"),
                Err(error) => format!("a late put fails: {}", error.code()),
            });
        }
        Ending::Work(go) => {
            go.send_replace(true);
            return None;
        }
    }
    Some(line)
}
