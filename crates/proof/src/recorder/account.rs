//! One tenant's account.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_types::{Epoch, Floor, Moment, Position};

use super::breach::Breach;

/// How far an acknowledgement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Committed by the tenure that answered; its tail may be lost with it.
    Local,
    /// In the store, and checked there after.
    Published,
}

/// An event as a replica served it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Where it stands.
    pub position: Position,
    /// Which write it is: the idempotency key under which it was sent.
    pub id: String,
}

/// A write that was acknowledged, not durable, and is not in what a later tenure serves: the declared tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The write.
    pub id: String,
    /// Where it was acknowledged.
    pub position: Position,
    /// When that was heard.
    pub acknowledged_at: Moment,
}

/// A write under one key, sent once or more often.
#[derive(Debug, Default)]
struct Write {
    /// How many of its requests may have been executed: not answered yet, or answered with an unknown outcome.
    open: u32,
    acknowledged: Option<Acknowledged>,
}

#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    position: Position,
    at: Moment,
    durable: bool,
    /// The epoch in whose history it was missing first.
    lost: Option<Epoch>,
}

/// What is known of one tenant.
#[derive(Debug, Default)]
pub(super) struct Account {
    writes: BTreeMap<String, Write>,
    /// By epoch, the highest position that was answered as published.
    published: BTreeMap<Epoch, u64>,
    /// Epochs that a handoff ended.
    handed_off: BTreeSet<Epoch>,
    floor: Floor,
    /// How many forgets were sent whose outcome is not known.
    forgets_open: u32,
    /// By epoch, the ticket of the first answer that was heard from it.
    first_heard: BTreeMap<Epoch, u64>,
    /// What every later history begins with.
    settled: Vec<Served>,
}

impl Account {
    pub(super) fn sent(&mut self, id: &str) {
        self.writes.entry(id.to_owned()).or_default().open += 1;
    }

    pub(super) fn refused(&mut self, id: &str) {
        self.write(id).open -= 1;
    }

    /// `sent`: the ticket that was taken before the request left.
    pub(super) fn acknowledged(
        &mut self,
        id: &str,
        position: Position,
        duplicate: bool,
        durability: Durability,
        sent: u64,
        now: (u64, Moment),
    ) -> Result<(), Breach> {
        self.write(id).open -= 1;
        if !duplicate {
            // A duplicate's position is its first writer's.
            self.heard(position.epoch, id, sent, now.0)?;
        }
        let durable = durability == Durability::Published
            || self.handed_off.contains(&position.epoch)
            || self.published.get(&position.epoch).is_some_and(|seq| position.seq <= *seq);
        let covered = self.floor.covers(position.epoch);
        let write = self.write(id);
        match write.acknowledged {
            Some(before) if before.position == position => {
                if durability == Durability::Published
                    && let Some(by) = before.lost
                {
                    return Err(Breach::CalledDurable { id: id.to_owned(), at: position, by });
                }
            }
            Some(before) if before.durable || position.epoch <= before.position.epoch => {
                return Err(Breach::Twice { id: id.to_owned(), first: before.position, second: position });
            }
            // Its first acknowledgement went with a tail.
            _ => {
                write.acknowledged = Some(Acknowledged { position, at: now.1, durable: false, lost: None });
            }
        }
        if durable
            && !covered
            && let Some(acknowledged) = &mut write.acknowledged
        {
            acknowledged.durable = true;
        }
        Ok(())
    }

    pub(super) fn published(&mut self, position: Position) -> Result<(), Breach> {
        let highest = self.published.entry(position.epoch).or_default();
        *highest = position.seq.max(*highest);
        let seq = *highest;
        self.durable(|at| at.epoch == position.epoch && at.seq <= seq)
    }

    pub(super) fn handed_off(&mut self, epoch: Epoch) -> Result<(), Breach> {
        self.handed_off.insert(epoch);
        self.durable(|at| at.epoch == epoch)
    }

    fn durable(&mut self, counts: impl Fn(Position) -> bool) -> Result<(), Breach> {
        for (id, write) in &mut self.writes {
            let Some(acknowledged) = write.acknowledged.as_mut().filter(|one| counts(one.position)) else {
                continue;
            };
            if let Some(by) = acknowledged.lost {
                return Err(Breach::CalledDurable { id: id.clone(), at: acknowledged.position, by });
            }
            acknowledged.durable = !self.floor.covers(acknowledged.position.epoch);
        }
        Ok(())
    }

    pub(super) fn forget_sent(&mut self) {
        self.forgets_open += 1;
    }

    pub(super) fn forget_refused(&mut self) {
        self.forgets_open -= 1;
    }

    pub(super) fn forgotten(&mut self, floor: Floor) {
        self.forgets_open -= 1;
        self.raise(floor);
    }

    fn raise(&mut self, floor: Floor) {
        self.floor = self.floor.max(floor);
        let floor = self.floor;
        for acknowledged in self.writes.values_mut().filter_map(|write| write.acknowledged.as_mut()) {
            acknowledged.durable &= !floor.covers(acknowledged.position.epoch);
        }
        // The history begins anew above a floor.
        if self.settled.first().is_some_and(|first| floor.covers(first.position.epoch)) {
            self.settled.clear();
        }
    }

    /// Notes an answer of `epoch`, asked at `asked`.
    fn heard(&mut self, epoch: Epoch, what: &str, asked: u64, now: u64) -> Result<(), Breach> {
        let younger = self
            .first_heard
            .iter()
            .rev()
            .take_while(|(younger, _)| **younger > epoch)
            .find(|(_, heard)| **heard < asked);
        if let Some((younger, _)) = younger {
            return Err(Breach::Overlap { older: epoch, younger: *younger, what: what.to_owned() });
        }
        self.first_heard.entry(epoch).or_insert(now);
        Ok(())
    }

    /// Judges a whole history, from its first event on, that the tenure at `by` served when it was asked at `asked`.
    pub(super) fn served(
        &mut self,
        by: Epoch,
        line: &[Served],
        asked: u64,
        now: u64,
    ) -> Result<(), Vec<Breach>> {
        let mut breaches: Vec<Breach> = self.heard(by, "a history", asked, now).err().into_iter().collect();
        breaches.extend(in_order(by, line));
        self.settle_open_forget(by, line, &mut breaches);
        for event in line {
            breaches.extend(self.judge(event));
        }
        let mut places: BTreeMap<&str, Position> = BTreeMap::new();
        for event in line {
            if let Some(first) = places.insert(&event.id, event.position) {
                breaches.push(Breach::Twice { id: event.id.clone(), first, second: event.position });
            }
        }
        for (expected, found) in self.settled.iter().zip(line.iter().map(Some).chain(std::iter::repeat(None)))
        {
            if found != Some(expected) {
                let found = found.map_or_else(|| "nothing".to_owned(), |found| found.id.clone());
                breaches.push(Breach::Rewritten { expected: expected.position, found, by });
            }
        }
        for (id, write) in &self.writes {
            let durable = write.acknowledged.filter(|one| one.durable).map(|one| one.position);
            if let Some(at) = durable.filter(|_| !places.contains_key(id.as_str())) {
                breaches.push(Breach::Missing { id: id.clone(), at, by });
            }
        }
        if !breaches.is_empty() {
            return Err(breaches);
        }
        for (id, write) in &mut self.writes {
            let Some(acknowledged) = &mut write.acknowledged else { continue };
            let at = acknowledged.position;
            if at.epoch >= by {
                continue;
            }
            if places.get(id.as_str()) == Some(&at) {
                // What the tenure started from is in the store.
                acknowledged.durable = true;
            } else if acknowledged.lost.is_none() {
                acknowledged.lost = Some(by);
            }
        }
        let older = line.iter().take_while(|event| event.position.epoch < by);
        self.settled = older.cloned().collect();
        Ok(())
    }

    /// A forget without an answer has happened as a whole or not at all; the history tells which.
    fn settle_open_forget(&mut self, by: Epoch, line: &[Served], breaches: &mut Vec<Breach>) {
        if self.forgets_open == 0 {
            return;
        }
        let durable =
            |write: &Write| write.acknowledged.is_some_and(|one| one.durable && one.position.epoch < by);
        let there: BTreeSet<&str> = line.iter().map(|event| event.id.as_str()).collect();
        let missing = self.writes.iter().find(|(id, write)| durable(write) && !there.contains(id.as_str()));
        let Some((missing, write)) = missing else { return };
        let up_to = write.acknowledged.map_or(by, |one| one.position.epoch);
        if let Some(served) = line.iter().find(|event| event.position.epoch <= up_to) {
            breaches.push(Breach::HalfForgotten { missing: missing.clone(), served: served.id.clone() });
            return;
        }
        // It was the epoch before this one, or an earlier one, that was forgotten: all that is gone.
        let first = line.first().map(|event| event.position.epoch);
        let acknowledged = self.writes.values().filter_map(|write| write.acknowledged);
        let gone = acknowledged
            .map(|one| one.position.epoch)
            .filter(|epoch| *epoch < by && first.is_none_or(|first| *epoch < first))
            .max();
        self.raise(Floor::at(gone.unwrap_or(up_to)));
    }

    fn judge(&self, event: &Served) -> Option<Breach> {
        let Served { position, id } = event;
        if self.floor.covers(position.epoch) {
            return Some(Breach::Forgotten { id: id.clone(), at: *position, floor: self.floor });
        }
        let Some(write) = self.writes.get(id) else {
            return Some(Breach::Unasked { id: id.clone(), at: *position, why: "never sent" });
        };
        let may_be_a_repeat = write.open > 0;
        match write.acknowledged {
            None if may_be_a_repeat => None,
            None => Some(Breach::Unasked { id: id.clone(), at: *position, why: "refused as not executed" }),
            Some(one) if one.position == *position => {
                one.lost.map(|_| Breach::Resurrected { id: id.clone(), at: one.position })
            }
            // The one that was acknowledged went with a tail, and a repeat whose answer nobody heard brought the write back.
            Some(one) if may_be_a_repeat && !one.durable => None,
            Some(one) if one.lost.is_some() => Some(Breach::Resurrected { id: id.clone(), at: one.position }),
            Some(one) => Some(Breach::Moved { id: id.clone(), told: one.position, found: *position }),
        }
    }

    pub(super) fn lost(&self) -> impl Iterator<Item = Lost> + '_ {
        self.writes.iter().filter_map(|(id, write)| {
            let one = write
                .acknowledged
                .filter(|one| one.lost.is_some() && !self.floor.covers(one.position.epoch))?;
            Some(Lost { id: id.clone(), position: one.position, acknowledged_at: one.at })
        })
    }

    pub(super) fn durable_ids(&self) -> impl Iterator<Item = &str> + '_ {
        let durable = |write: &Write| write.acknowledged.is_some_and(|one| one.durable);
        self.writes.iter().filter(move |(_, write)| durable(write)).map(|(id, _)| id.as_str())
    }

    fn write(&mut self, id: &str) -> &mut Write {
        self.writes.entry(id.to_owned()).or_default()
    }
}

/// Numbers from one on without a hole, epochs that never fall, none above who serves.
fn in_order(by: Epoch, line: &[Served]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut before = Position { epoch: Epoch::FIRST, seq: 0 };
    for event in line {
        let found = event.position;
        if found.seq != before.seq + 1 || found.epoch < before.epoch {
            let expected = Position { epoch: before.epoch, seq: before.seq + 1 };
            breaches.push(Breach::OutOfOrder { found, expected });
        }
        if found.epoch > by {
            breaches.push(Breach::FromAbove { found, by });
        }
        before = found;
    }
    breaches
}
