//! What `execute` was told, which has no position: once per key, and never lost where it was published.

use std::collections::BTreeMap;

use leasehold_types::{Epoch, Floor, LeaseKey};

/// What broke the rule, in words.
pub(super) type Broken = String;

/// One `execute`, sent once or more often under its key.
#[derive(Debug, Default)]
struct Operation {
    /// How many of its requests may have been executed: not answered yet, or without a known outcome.
    open: u32,
    told: Option<Told>,
}

#[derive(Clone, Debug)]
struct Told {
    epoch: Epoch,
    /// What was answered: a repetition answers the same.
    answer: String,
    /// The ticket of the answer.
    at: u64,
    durable: bool,
    /// It was in a tail that a younger tenure did not find.
    lost: bool,
}

#[derive(Debug, Default)]
struct Account {
    operations: BTreeMap<String, Operation>,
    floor: Floor,
}

/// The operations of all tenants.
#[derive(Debug, Default)]
pub(super) struct SqlBook {
    accounts: BTreeMap<LeaseKey, Account>,
    ticket: u64,
}

/// A read of the operations that are there, by the tenure at `by`.
pub(super) struct Found<'a> {
    pub(super) by: Epoch,
    /// How often each is there.
    pub(super) counts: &'a [(String, i64)],
    /// The ticket that was taken before.
    pub(super) asked: u64,
}

impl SqlBook {
    /// Where the book stands now.
    pub(super) fn ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    fn account(&mut self, key: &LeaseKey) -> &mut Account {
        self.accounts.entry(key.clone()).or_default()
    }

    pub(super) fn sent(&mut self, key: &LeaseKey, id: &str) {
        self.account(key).operations.entry(id.to_owned()).or_default().open += 1;
    }

    /// It was refused and not executed.
    pub(super) fn refused(&mut self, key: &LeaseKey, id: &str) {
        self.account(key).operations.entry(id.to_owned()).or_default().open -= 1;
    }

    pub(super) fn told(
        &mut self,
        key: &LeaseKey,
        id: &str,
        epoch: Epoch,
        answer: String,
        duplicate: bool,
    ) -> Result<(), Broken> {
        let at = self.ticket();
        let account = self.account(key);
        let floor = account.floor;
        let operation = account.operations.entry(id.to_owned()).or_default();
        operation.open -= 1;
        let told = Told { epoch, answer, at, durable: false, lost: false };
        let before = operation.told.as_mut().filter(|before| !floor.covers(before.epoch) && !before.lost);
        match before {
            Some(before) if duplicate => {
                let (first, again) = (&before.answer, &told.answer);
                if first != again {
                    return Err(format!("`{id}` was answered {first}, and repeated {again}"));
                }
            }
            Some(before) if before.durable || before.epoch >= epoch => {
                return Err(format!(
                    "`{id}` was executed at epoch {}, and once more at epoch {epoch}",
                    before.epoch
                ));
            }
            _ => operation.told = Some(told),
        }
        Ok(())
    }

    /// Whatever the tenure at `epoch` answered up to a ticket is in the store.
    pub(super) fn published(&mut self, key: &LeaseKey, epoch: Epoch, up_to: u64) {
        for operation in self.account(key).operations.values_mut() {
            if let Some(told) = operation.told.as_mut().filter(|told| told.epoch == epoch && told.at <= up_to)
            {
                told.durable = true;
            }
        }
    }

    /// A forget was answered.
    pub(super) fn forgotten(&mut self, key: &LeaseKey, floor: Floor) {
        let account = self.account(key);
        account.floor = account.floor.max(floor);
        // Who sends it again has it executed again, and who waits for an answer is told by a tenure that is over.
        let floor = account.floor;
        account.operations.retain(|_, operation| {
            operation.open > 0 || operation.told.as_ref().is_none_or(|told| !floor.covers(told.epoch))
        });
    }

    /// Judges what a tenure has.
    pub(super) fn found(&mut self, key: &LeaseKey, found: &Found<'_>) -> Result<(), Broken> {
        let account = self.account(key);
        let counts: BTreeMap<&str, i64> =
            found.counts.iter().map(|(id, count)| (id.as_str(), *count)).collect();
        for (id, count) in &counts {
            if *count != 1 {
                return Err(format!("`{id}` was executed {count} times"));
            }
            let known = account.operations.get(*id);
            if known.is_none_or(|known| known.open == 0 && known.told.is_none()) {
                return Err(format!(
                    "`{id}` is there, was never sent, refused as not executed, or forgotten"
                ));
            }
            if known.is_some_and(|known| known.open == 0 && known.told.as_ref().is_some_and(|told| told.lost))
            {
                return Err(format!("`{id}` was lost and is there again"));
            }
        }
        for (id, operation) in &mut account.operations {
            let Some(told) = operation.told.as_mut().filter(|told| !account.floor.covers(told.epoch)) else {
                continue;
            };
            let is_there = counts.contains_key(id.as_str());
            let owes = told.durable || told.epoch == found.by;
            if owes && told.at < found.asked && !is_there && told.epoch <= found.by {
                return Err(format!(
                    "`{id}`, executed at epoch {}, is not in what epoch {} serves",
                    told.epoch, found.by
                ));
            }
            if told.epoch < found.by {
                told.durable |= is_there;
                told.lost |= !is_there;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> LeaseKey {
        "acme/t".parse().unwrap()
    }

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    fn told(book: &mut SqlBook, id: &str, at: u64, duplicate: bool) -> Result<(), Broken> {
        book.sent(&key(), id);
        book.told(&key(), id, epoch(at), "one row".into(), duplicate)
    }

    fn found(book: &mut SqlBook, by: u64, counts: &[(&str, i64)]) -> Result<(), Broken> {
        let counts: Vec<(String, i64)> =
            counts.iter().map(|(id, count)| ((*id).to_owned(), *count)).collect();
        let asked = book.ticket();
        book.found(&key(), &Found { by: epoch(by), counts: &counts, asked })
    }

    #[test]
    fn what_is_published_is_there_once_and_a_tail_may_go() {
        let mut book = SqlBook::default();
        told(&mut book, "a", 1, false).unwrap();
        let up_to = book.ticket();
        told(&mut book, "b", 1, false).unwrap();
        assert!(found(&mut book, 1, &[("a", 1)]).is_err(), "the very tenure has all of it");
        book.published(&key(), epoch(1), up_to);
        assert!(found(&mut book, 2, &[("a", 2)]).is_err());
        assert!(found(&mut book, 2, &[]).is_err());
        found(&mut book, 2, &[("a", 1)]).unwrap();
        assert!(found(&mut book, 3, &[("a", 1), ("b", 1)]).is_err(), "what was lost stays lost");
        told(&mut book, "b", 3, false).unwrap();
        found(&mut book, 3, &[("a", 1), ("b", 1)]).unwrap();
    }

    #[test]
    fn a_repetition_is_answered_and_not_executed() {
        let mut book = SqlBook::default();
        told(&mut book, "a", 1, false).unwrap();
        told(&mut book, "a", 1, true).unwrap();
        assert!(told(&mut book, "a", 1, false).is_err());
        book.sent(&key(), "a");
        assert!(book.told(&key(), "a", epoch(1), "two rows".into(), true).is_err());
    }

    #[test]
    fn nothing_is_there_that_was_not_sent_or_that_was_forgotten() {
        let mut book = SqlBook::default();
        assert!(found(&mut book, 1, &[("x", 1)]).is_err());
        book.sent(&key(), "x");
        found(&mut book, 1, &[("x", 1)]).unwrap();
        book.refused(&key(), "x");
        assert!(found(&mut book, 1, &[("x", 1)]).is_err());
        told(&mut book, "a", 2, false).unwrap();
        book.forgotten(&key(), Floor::at(epoch(2)));
        assert!(found(&mut book, 3, &[("a", 1)]).is_err());
        told(&mut book, "a", 3, false).unwrap();
        found(&mut book, 3, &[("a", 1)]).unwrap();
    }
}
