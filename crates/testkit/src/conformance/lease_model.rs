//! The rules of a lease row as a few lines without a store, and long sequences of calls compared with them.

use std::time::Duration;

use leasehold_lease::{Acquisition, Claim, Grant, LeaseRow, Renewal};
use leasehold_types::{Epoch, Floor, LeaseKey, ReplicaId, TenureId};
use uuid::Uuid;

use super::lease::LeaseFixture;

const SEQUENCES: u64 = 4;
const STEPS: usize = 60;
const TTL: Duration = Duration::from_secs(1_000);

/// The row as the rules say it stands. Time is counted in tenths of the ttl, so that what a store needs for a call is lost in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    epoch: u64,
    owner: Option<Holding>,
    expires: u64,
    floor: u64,
    receipt: Option<u64>,
    is_paused: bool,
}

/// Replica and attempt.
type Holding = (u64, u64);
/// A grant as its holder remembers it: replica, attempt, epoch.
type Remembered = (u64, u64, u64);

#[derive(Clone, Copy, Debug)]
enum Call {
    Acquire(Holding),
    AcquireToForget(Holding),
    Pause,
    Resume,
    Renew(Remembered),
    Release(Remembered),
    RaiseFloor(Remembered),
    StoreReceipt(Remembered, u64),
    Advance(Remembered, u64),
    Pass(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Granted { epoch: u64, floor: u64 },
    Held { replica: u64, epoch: u64 },
    Paused,
    Done(bool),
    Number(Option<u64>),
}

impl Row {
    fn is_of(&self, (replica, attempt, epoch): Remembered) -> bool {
        self.owner == Some((replica, attempt)) && self.epoch == epoch
    }

    /// What the rules say that `call` does and answers at `now`.
    fn expect(&mut self, call: Call, now: u64) -> Answer {
        match call {
            Call::Pass(_) => Answer::Done(true),
            Call::Acquire(who) | Call::AcquireToForget(who) => {
                match self.owner {
                    Some(owner) if owner == who => {}
                    Some((replica, _)) if now < self.expires => {
                        return Answer::Held { replica, epoch: self.epoch };
                    }
                    _ if self.is_paused && matches!(call, Call::Acquire(_)) => return Answer::Paused,
                    _ => self.epoch += 1,
                }
                (self.owner, self.expires) = (Some(who), now + 10);
                Answer::Granted { epoch: self.epoch, floor: self.floor }
            }
            // A tenant that nobody ever had cannot be paused.
            Call::Pause => {
                let newly = !self.is_paused;
                self.is_paused = self.epoch > 0;
                Answer::Number((self.epoch > 0).then_some(newly.into()))
            }
            Call::Resume => Answer::Done(std::mem::take(&mut self.is_paused)),
            Call::Renew(claim) if self.is_of(claim) => {
                self.expires = now + 10;
                Answer::Done(true)
            }
            Call::Release(claim) if self.is_of(claim) => {
                (self.owner, self.expires) = (None, 0);
                Answer::Done(true)
            }
            Call::RaiseFloor(claim) if self.is_of(claim) => {
                (self.floor, self.receipt, self.is_paused) = (self.epoch, None, false);
                Answer::Number(Some(self.floor))
            }
            Call::StoreReceipt(claim, text) if self.is_of(claim) && self.floor == self.epoch => {
                self.receipt = Some(text);
                Answer::Done(true)
            }
            Call::Advance(claim, beyond) if self.is_of(claim) => {
                self.epoch = self.epoch.max(beyond) + 1;
                Answer::Number(Some(self.epoch))
            }
            Call::Renew(_) | Call::Release(_) | Call::StoreReceipt(..) => Answer::Done(false),
            Call::RaiseFloor(_) | Call::Advance(..) => Answer::Number(None),
        }
    }
}

/// Whatever is called in whatever order, row and answers are what the rules say; the epoch and the floor never fall.
pub async fn any_sequence_of_calls_follows_the_rules(fixture: &LeaseFixture) {
    for sequence in 1..=SEQUENCES {
        let key: LeaseKey = format!("acme/model-{sequence}").parse().expect("a lease key");
        let mut chance = Chance(sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (mut row, mut now) = (Row::default(), 0);
        let mut grants: Vec<Remembered> = vec![(0, 0, 1)];
        let mut calls = Vec::new();
        for step in 0..STEPS {
            let call = chance.call(&grants);
            calls.push(call);
            let before = row;
            let expected = row.expect(call, now);
            let answer = if let Call::Pass(tenths) = call {
                now += tenths;
                fixture.advance(TTL / 10 * u32::try_from(tenths).expect("a few tenths")).await;
                Answer::Done(true)
            } else {
                perform(fixture, &key, call, step).await
            };
            assert_eq!(answer, expected, "{calls:?}");
            match (call, answer) {
                (
                    Call::Acquire((replica, attempt)) | Call::AcquireToForget((replica, attempt)),
                    Answer::Granted { epoch, .. },
                )
                | (Call::Advance((replica, attempt, _), _), Answer::Number(Some(epoch))) => {
                    grants.push((replica, attempt, epoch));
                }
                _ => {}
            }
            assert!(row.epoch >= before.epoch && row.floor >= before.floor, "{calls:?}");
            let found = fixture.another.read(&key).await.expect("a read");
            assert_eq!(
                found.as_ref().map_or_else(Row::default, |found| shown(found, row.expires)),
                row,
                "{calls:?}"
            );
            let runs = found.and_then(|found| found.owner).is_some_and(|owner| !owner.remaining.is_zero());
            assert_eq!(runs, row.owner.is_some() && now < row.expires, "{calls:?}");
        }
    }
}

/// Makes the call, by either way into the store.
async fn perform(fixture: &LeaseFixture, key: &LeaseKey, call: Call, step: usize) -> Answer {
    let store = if step.is_multiple_of(2) { &fixture.store } else { &fixture.another };
    let claim = |(replica, attempt, epoch): Remembered| Claim {
        key: key.clone(),
        replica: replica_id(replica),
        tenure: tenure_id(attempt),
        epoch: Epoch::new(epoch).expect("an epoch"),
    };
    match call {
        Call::Pass(_) => Answer::Done(true),
        Call::Acquire((replica, attempt)) | Call::AcquireToForget((replica, attempt)) => {
            let (replica, tenure) = (replica_id(replica), tenure_id(attempt));
            let asked = match call {
                Call::AcquireToForget(_) => store.acquire_to_forget(key, &replica, tenure, TTL).await,
                _ => store.acquire(key, &replica, tenure, TTL).await,
            };
            match asked.expect("an acquisition") {
                Acquisition::Paused { .. } => Answer::Paused,
                Acquisition::Granted(Grant { epoch, floor }) => {
                    Answer::Granted { epoch: epoch.get(), floor: floor.get() }
                }
                Acquisition::Held(holder) => {
                    Answer::Held { replica: number_of(&holder.replica), epoch: holder.epoch.get() }
                }
            }
        }
        Call::Pause => Answer::Number(store.pause(key).await.expect("a pause").map(u64::from)),
        Call::Resume => Answer::Done(store.resume(key).await.expect("a resume")),
        Call::Renew(held) => {
            let answers = store.renew(&[claim(held)], TTL).await.expect("a renewal");
            Answer::Done(answers == [Renewal::Granted])
        }
        Call::Release(held) => Answer::Done(store.release(&claim(held)).await.expect("a release")),
        Call::RaiseFloor(held) => {
            let floor = store.raise_floor(&claim(held), TTL).await.expect("an answer");
            Answer::Number(floor.map(Floor::get))
        }
        Call::StoreReceipt(held, text) => {
            let stored = store.store_receipt(&claim(held), &text.to_string()).await;
            Answer::Done(stored.expect("an answer"))
        }
        Call::Advance(held, beyond) => {
            let beyond = Epoch::new(beyond).expect("an epoch");
            let epoch = store.advance_epoch(&claim(held), beyond).await.expect("an answer");
            Answer::Number(epoch.map(Epoch::get))
        }
    }
}

/// A store's row in the model's terms; it tells how long a lease still runs, not until when, so that is compared apart.
fn shown(row: &LeaseRow, expires: u64) -> Row {
    let owner = row.owner.as_ref();
    Row {
        epoch: row.epoch.get(),
        owner: owner.map(|owner| (number_of(&owner.replica), attempt_of(owner.tenure))),
        expires,
        floor: row.floor.get(),
        receipt: row.receipt.as_ref().map(|text| text.parse().expect("a receipt of ours")),
        is_paused: row.paused_at.is_some(),
    }
}

fn replica_id(number: u64) -> ReplicaId {
    format!("r{number}").parse().expect("a replica id")
}

fn number_of(replica: &ReplicaId) -> u64 {
    replica.as_str()[1..].parse().expect("a replica of ours")
}

fn tenure_id(attempt: u64) -> TenureId {
    TenureId::new(Uuid::from_u128(attempt.into()))
}

fn attempt_of(tenure: TenureId) -> u64 {
    u64::try_from(tenure.as_uuid().as_u128()).expect("an attempt of ours")
}

/// The same calls in every run (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn call(&mut self, grants: &[Remembered]) -> Call {
        // Mostly the last grant, now and then one that should be long dead.
        let last = grants.len() as u64 - 1;
        let back = if self.below(4) == 0 { self.below(last + 1) } else { 0 };
        let held = grants[usize::try_from(last - back).expect("an index")];
        match self.below(16) {
            0..=3 => Call::Acquire((self.below(3), self.below(4))),
            4 | 5 => Call::Renew(held),
            6 => Call::Release(held),
            7 => Call::RaiseFloor(held),
            8 => Call::StoreReceipt(held, self.below(100)),
            9 => Call::Advance(held, held.2 + self.below(4)),
            10 => Call::AcquireToForget((self.below(3), self.below(4))),
            11 => Call::Pause,
            12 | 13 => Call::Resume,
            // 5 or 11 tenths: never on the edge of a lease's end.
            _ => Call::Pass(5 + 6 * self.below(2)),
        }
    }
}
