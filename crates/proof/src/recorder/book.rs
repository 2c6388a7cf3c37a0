//! The accounts of all tenants, and the order in which things were sent and heard.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use leasehold_types::{Clock, Epoch, Floor, LeaseKey, Position};

use super::{
    account::{Account, Durability, Lost, Served},
    breach::Breach,
};

/// Everything that callers of a fleet were told. Shared by all of them.
pub struct Recorder {
    clock: Arc<dyn Clock>,
    tickets: AtomicU64,
    accounts: Mutex<BTreeMap<LeaseKey, Account>>,
    /// Every breach that was found.
    found: Mutex<Vec<(LeaseKey, Breach)>>,
}

/// A request that has left, or is about to. Answered with one of the recorder's functions, or dropped: then its outcome is
/// unknown, and it may have been executed, once, at any time.
#[derive(Debug)]
#[must_use = "take it before the request leaves, and hand it back with the answer"]
pub struct Sent {
    tenant: LeaseKey,
    id: String,
    ticket: u64,
}

impl Recorder {
    /// An empty one. `clock` tells when acknowledgements were heard, which [`lost`](Self::lost) reports; no rule rests on it.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tickets: AtomicU64::new(0), accounts: Mutex::default(), found: Mutex::default() }
    }

    fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::SeqCst)
    }

    fn with<T>(&self, tenant: &LeaseKey, act: impl FnOnce(&mut Account) -> T) -> T {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        act(accounts.entry(tenant.clone()).or_default())
    }

    /// Keeps what was found, also where whoever is told does not look.
    fn note(&self, tenant: &LeaseKey, breaches: &[Breach]) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(breaches.iter().map(|breach| (tenant.clone(), breach.clone())));
    }

    fn noted(&self, tenant: &LeaseKey, judged: Result<(), Breach>) -> Result<(), Breach> {
        judged.inspect_err(|breach| self.note(tenant, std::slice::from_ref(breach)))
    }

    /// Every breach that was found of a tenant, whoever was told of it.
    #[must_use]
    pub fn breaches(&self, tenant: &LeaseKey) -> Vec<Breach> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().filter(|(of, _)| of == tenant).map(|(_, breach)| breach.clone()).collect()
    }

    /// The write `id` is about to be sent, the first time or again. An id is one content for ever, and the write's idempotency key.
    pub fn sending(&self, tenant: &LeaseKey, id: &str) -> Sent {
        self.with(tenant, |account| account.sent(id));
        Sent { tenant: tenant.clone(), id: id.to_owned(), ticket: self.ticket() }
    }

    /// It was acknowledged at `position`; `duplicate`: it had been executed before.
    pub fn acknowledged(
        &self,
        sent: Sent,
        position: Position,
        duplicate: bool,
        durability: Durability,
    ) -> Result<(), Breach> {
        let Sent { tenant, id, ticket } = sent;
        let now = (self.ticket(), self.clock.now());
        let judged = self
            .with(&tenant, |account| account.acknowledged(&id, position, duplicate, durability, ticket, now));
        self.noted(&tenant, judged)
    }

    /// It was refused, and its answer says that it was not executed.
    pub fn refused(&self, sent: Sent) {
        let Sent { tenant, id, .. } = sent;
        self.with(&tenant, |account| account.refused(&id));
    }

    /// Everything up to `position` was answered as published by the tenure that wrote there.
    pub fn published(&self, tenant: &LeaseKey, position: Position) -> Result<(), Breach> {
        self.noted(tenant, self.with(tenant, |account| account.published(position)))
    }

    /// The tenure at `epoch` was handed off, and that succeeded: nothing that it acknowledged may be missing.
    pub fn handed_off(&self, tenant: &LeaseKey, epoch: Epoch) -> Result<(), Breach> {
        self.noted(tenant, self.with(tenant, |account| account.handed_off(epoch)))
    }

    /// A forget is about to be sent.
    pub fn forget_sent(&self, tenant: &LeaseKey) {
        self.with(tenant, Account::forget_sent);
    }

    /// A forget was refused, and its answer says that it was not executed.
    pub fn forget_refused(&self, tenant: &LeaseKey) {
        self.with(tenant, Account::forget_refused);
    }

    /// A forget was answered with a receipt.
    pub fn forgotten(&self, tenant: &LeaseKey, floor: Floor) {
        self.with(tenant, |account| account.forgotten(floor));
    }

    /// A ticket for a history that is about to be asked for.
    pub fn asking(&self) -> u64 {
        self.ticket()
    }

    /// Judges the whole history of a tenant that the tenure at `by` served to who asked at `asked`.
    pub fn served(
        &self,
        tenant: &LeaseKey,
        by: Epoch,
        line: &[Served],
        asked: u64,
    ) -> Result<(), Vec<Breach>> {
        let now = self.ticket();
        self.with(tenant, |account| account.served(by, line, asked, now))
            .inspect_err(|breaches| self.note(tenant, breaches))
    }

    /// What was acknowledged and lost, as far as histories have shown: the declared tails, in no order.
    #[must_use]
    pub fn lost(&self, tenant: &LeaseKey) -> Vec<Lost> {
        self.with(tenant, |account| account.lost().collect())
    }

    /// The writes that every later history must have, as far as is known.
    #[must_use]
    pub fn durable(&self, tenant: &LeaseKey) -> Vec<String> {
        self.with(tenant, |account| account.durable_ids().map(str::to_owned).collect())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::ManualClock;

    use super::*;

    fn key() -> LeaseKey {
        "acme/user-1".parse().unwrap()
    }

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    fn at(text: &str) -> Position {
        text.parse().unwrap()
    }

    /// A book of one tenant, in short words.
    struct Book(Recorder);

    impl Book {
        fn new() -> Self {
            Self(Recorder::new(Arc::new(ManualClock::new())))
        }

        fn write(&self, id: &str, position: &str) {
            self.acknowledge(self.0.sending(&key(), id), position).unwrap();
        }

        fn acknowledge(&self, sent: Sent, position: &str) -> Result<(), Breach> {
            self.0.acknowledged(sent, at(position), false, Durability::Local)
        }

        fn served(&self, by: u64, line: &[(&str, &str)]) -> Result<(), Vec<Breach>> {
            let line: Vec<Served> = line
                .iter()
                .map(|(position, id)| Served { position: at(position), id: (*id).to_owned() })
                .collect();
            self.0.served(&key(), epoch(by), &line, self.0.asking())
        }

        fn breach(&self, by: u64, line: &[(&str, &str)]) -> Breach {
            let mut breaches = self.served(by, line).unwrap_err();
            assert_eq!(breaches.len(), 1, "{breaches:?}");
            breaches.remove(0)
        }
    }

    #[test]
    fn a_tail_may_go_and_what_is_published_may_not() {
        let book = Book::new();
        book.write("a", "1-1");
        book.write("b", "1-2");
        book.0.published(&key(), at("1-1")).unwrap();
        assert_eq!(book.0.durable(&key()), ["a"]);
        book.served(2, &[("1-1", "a")]).unwrap();
        assert_eq!(book.0.lost(&key()).iter().map(|lost| lost.id.as_str()).collect::<Vec<_>>(), ["b"]);
        let missing = Breach::Missing { id: "a".into(), at: at("1-1"), by: epoch(3) };
        assert!(book.served(3, &[]).unwrap_err().contains(&missing));
    }

    #[test]
    fn a_handoff_takes_everything_along_whenever_it_is_heard_of() {
        let book = Book::new();
        book.write("a", "1-1");
        let in_flight = book.0.sending(&key(), "b");
        book.0.handed_off(&key(), epoch(1)).unwrap();
        book.acknowledge(in_flight, "1-2").unwrap();
        let missing = Breach::Missing { id: "b".into(), at: at("1-2"), by: epoch(2) };
        assert_eq!(book.breach(2, &[("1-1", "a")]), missing);

        let book = Book::new();
        book.write("a", "1-1");
        book.served(2, &[]).unwrap();
        let called = Breach::CalledDurable { id: "a".into(), at: at("1-1"), by: epoch(2) };
        assert_eq!(book.0.handed_off(&key(), epoch(1)), Err(called.clone()));
        assert_eq!(book.0.published(&key(), at("1-1")), Err(called));
    }

    #[test]
    fn what_is_lost_stays_lost_unless_it_is_sent_again() {
        let book = Book::new();
        book.write("a", "1-1");
        book.served(2, &[]).unwrap();
        let back = Breach::Resurrected { id: "a".into(), at: at("1-1") };
        assert_eq!(book.breach(3, &[("1-1", "a")]), back);

        let again = book.0.sending(&key(), "a");
        book.served(3, &[("3-1", "a")]).unwrap();
        book.acknowledge(again, "3-1").unwrap();
        book.served(3, &[("3-1", "a")]).unwrap();
    }

    #[test]
    fn nothing_is_served_twice_elsewhere_or_unasked() {
        let book = Book::new();
        book.write("a", "1-1");
        let twice = Breach::Twice { id: "a".into(), first: at("1-1"), second: at("1-2") };
        assert!(book.served(1, &[("1-1", "a"), ("1-2", "a")]).unwrap_err().contains(&twice));
        let sent = book.0.sending(&key(), "a");
        assert_eq!(book.acknowledge(sent, "1-3"), Err(twice_at("1-3")));
        let unasked = |why| Breach::Unasked { id: "b".into(), at: at("1-2"), why };
        assert_eq!(book.breach(1, &[("1-1", "a"), ("1-2", "b")]), unasked("never sent"));
        let sent = book.0.sending(&key(), "b");
        book.served(1, &[("1-1", "a"), ("1-2", "b")]).unwrap();
        book.0.refused(sent);
        assert_eq!(book.breach(1, &[("1-1", "a"), ("1-2", "b")]), unasked("refused as not executed"));
        book.write("c", "1-4");
        let sent = book.0.sending(&key(), "d");
        drop(sent);
        let moved = Breach::Moved { id: "c".into(), told: at("1-4"), found: at("1-3") };
        assert_eq!(book.breach(1, &[("1-1", "a"), ("1-2", "d"), ("1-3", "c")]), moved);
    }

    fn twice_at(second: &str) -> Breach {
        Breach::Twice { id: "a".into(), first: at("1-1"), second: at(second) }
    }

    #[test]
    fn a_duplicate_answers_where_the_first_one_is() {
        let book = Book::new();
        book.write("a", "1-1");
        book.0.published(&key(), at("1-1")).unwrap();
        book.served(2, &[("1-1", "a")]).unwrap();
        let again = book.0.sending(&key(), "a");
        book.0.acknowledged(again, at("1-1"), true, Durability::Published).unwrap();
        let again = book.0.sending(&key(), "a");
        assert_eq!(book.0.acknowledged(again, at("2-2"), false, Durability::Local), Err(twice_at("2-2")));
    }

    #[test]
    fn histories_are_in_order_and_one_line() {
        let book = Book::new();
        for (id, position) in [("a", "1-1"), ("b", "1-2"), ("c", "2-3")] {
            book.write(id, position);
        }
        let out_of_order = |found, expected| Breach::OutOfOrder { found: at(found), expected: at(expected) };
        assert_eq!(book.breach(2, &[("1-2", "b")]), out_of_order("1-2", "1-1"));
        let above = Breach::FromAbove { found: at("2-3"), by: epoch(1) };
        let line = [("1-1", "a"), ("1-2", "b"), ("2-3", "c")];
        assert!(book.served(1, &line).unwrap_err().contains(&above));
        book.served(2, &line).unwrap();
        for (id, position) in [("x", "3-2"), ("y", "3-1")] {
            drop(book.0.sending(&key(), id));
            let rewritten = Breach::Rewritten { expected: at("1-2"), found: "x".into(), by: epoch(3) };
            let found = book.served(3, &[("1-1", "a"), ("3-2", "x")]).unwrap_err();
            assert!(found.contains(&rewritten), "{position}: {found:?}");
        }
    }

    #[test]
    fn an_older_tenure_answers_nothing_that_was_asked_after_a_younger_one_answered() {
        let book = Book::new();
        let (early, late_epoch) = (book.0.sending(&key(), "a"), epoch(1));
        book.served(2, &[]).unwrap();
        book.acknowledge(early, "1-1").unwrap();
        let late = book.0.sending(&key(), "b");
        let overlap =
            |what: &str| Breach::Overlap { older: late_epoch, younger: epoch(2), what: what.into() };
        assert_eq!(book.acknowledge(late, "1-2"), Err(overlap("b")));
        assert!(book.served(1, &[("1-1", "a")]).unwrap_err().contains(&overlap("a history")));
    }

    #[test]
    fn a_forget_is_whole_and_for_ever() {
        let book = Book::new();
        book.write("a", "1-1");
        book.write("b", "1-2");
        book.0.handed_off(&key(), epoch(1)).unwrap();
        book.0.forget_sent(&key());
        // It was not executed: everything is there.
        book.served(2, &[("1-1", "a"), ("1-2", "b")]).unwrap();
        let half = Breach::HalfForgotten { missing: "b".into(), served: "a".into() };
        assert!(book.served(3, &[("1-1", "a")]).unwrap_err().contains(&half));
        // It was.
        book.served(4, &[]).unwrap();
        let forgotten = Breach::Forgotten { id: "a".into(), at: at("1-1"), floor: Floor::at(epoch(1)) };
        assert!(book.served(5, &[("1-1", "a"), ("1-2", "b")]).unwrap_err().contains(&forgotten));

        let book = Book::new();
        book.write("a", "1-1");
        book.0.published(&key(), at("1-1")).unwrap();
        book.0.forget_sent(&key());
        book.0.forgotten(&key(), Floor::at(epoch(1)));
        assert_eq!(book.0.durable(&key()), [""; 0]);
        book.write("b", "2-1");
        book.served(3, &[("2-1", "b")]).unwrap();
        let rewritten = Breach::Rewritten { expected: at("2-1"), found: "nothing".into(), by: epoch(4) };
        assert!(book.served(4, &[]).unwrap_err().contains(&rewritten));
    }
}
