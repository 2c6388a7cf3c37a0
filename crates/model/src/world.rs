//! The two stores in memory: a row and objects, in which every operation is one atomic step, and what has to be remembered
//! to judge what happens.

use bytes::Bytes;
use leasehold_blob::{BlobEntry, BlobKey, Put};
use leasehold_lease::{Claim, LeaseRow, Owner};
use leasehold_snapshot::{
    Listing, Name,
    format::{Base, Entry, Manifest},
    plan::{Answer, Ask},
};
use leasehold_types::{Epoch, FencedReason, Floor};

use crate::{
    rule::Rule,
    tables::{Ledger, Object, Tables, byte, epoch, id, number, replica},
};

/// The row. Time is left out: a lease can be taken at any moment, as if every clock lied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Row {
    pub(crate) epoch: u8,
    /// Whose it is; 0: nobody's.
    pub(crate) tenure: u8,
    pub(crate) floor: u8,
}

/// A manifest that was put under a name that had none before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Publication {
    epoch: u8,
    number: u8,
    tenure: u8,
    ledger: Ledger,
    /// Put at or below a forget that was complete.
    dead: bool,
}

/// A base that a tenure put for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pinned {
    epoch: u8,
    tenure: u8,
    /// How many publications there were before it.
    after: u8,
}

/// A tenure that began to serve.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Served {
    epoch: u8,
    tenure: u8,
    /// The epoch of the snapshot that it started from; 0: empty.
    from: u8,
}

/// What is to be done in the stores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    /// What a plan asked. `image`: what an upload puts. `repeated`: an earlier one had no answer.
    Ask { ask: Ask, image: Option<Bytes>, repeated: bool },
    /// The second page of a listing.
    RestOfList { page: Vec<Object>, after: u16 },
    /// Raise the row's epoch, whoever has the row.
    AdvanceAnyway { beyond: Epoch },
    /// Nothing: the answer is known.
    Known(Answer),
}

/// Something that a tenure comes to, to be judged and remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    /// It serves, from this snapshot.
    Began { epoch: u8, floor: u8, from: Option<(u8, u8)> },
    /// A publish is acknowledged.
    Acknowledged { epoch: u8, number: u8 },
    /// A forget is complete.
    Forgotten { floor: u8 },
    /// It learned that it is superseded, or past its deadline.
    Fenced(FencedReason),
    /// It serves on after a lapse. `superseded`: it was before it asked.
    Resumed { superseded: bool },
    /// A step ended in damage.
    Damaged,
}

/// The stores between two steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// By the numbers of their names.
    objects: Vec<Object>,
    /// Puts that may still be executed.
    late: Vec<Object>,
    pub(crate) row: Row,
    /// The states that the row has had, as long as it may fall back to one.
    rows: Option<Vec<Row>>,
    published: Vec<Publication>,
    pinned: Vec<Pinned>,
    served: Vec<Served>,
    /// Every floor that some row had.
    raised: Vec<u8>,
    /// The highest floor of a forget that is complete.
    forgotten: u8,
}

impl World {
    pub(crate) fn new(rewinds: bool) -> Self {
        let rows = rewinds.then(|| vec![Row::default()]);
        Self { rows, raised: vec![0], ..Self::default() }
    }

    /// A new tenure takes the row, whoever has it.
    pub(crate) fn acquire(&mut self, tenure: u8) {
        self.row = Row { epoch: self.row.epoch + 1, tenure, floor: self.row.floor };
        self.remember_row();
    }

    fn remember_row(&mut self) {
        if let Some(rows) = &mut self.rows
            && let Err(at) = rows.binary_search(&self.row)
        {
            rows.insert(at, self.row);
        }
    }

    /// What the row can fall back to.
    pub(crate) fn earlier_rows(&self) -> &[Row] {
        self.rows.as_deref().unwrap_or_default()
    }

    /// The row falls back. `last`: it will not again.
    pub(crate) fn fall_back(&mut self, to: usize, last: bool) {
        self.row = self.earlier_rows()[to];
        if last {
            self.rows = None;
        }
    }

    pub(crate) fn late(&self) -> &[Object] {
        &self.late
    }

    /// A put is executed after its caller saw an error.
    pub(crate) fn land(&mut self, tables: &Tables, which: usize) {
        let (name, body) = self.late.remove(which);
        self.put(tables, &tables.name(name), &tables.body(body));
    }

    pub(crate) fn is_of(&self, claim: &Claim) -> bool {
        self.row.tenure == number(claim.tenure) && u64::from(self.row.epoch) == claim.epoch.get()
    }

    /// Whether the store, asked at this moment, knows of a successor or of a forget.
    pub(crate) fn supersedes(&self, tables: &Tables, epoch: Epoch) -> bool {
        self.pinned.iter().any(|pinned| u64::from(pinned.epoch) > epoch.get())
            || self.floor(tables).covers(epoch)
    }

    fn floor(&self, tables: &Tables) -> Floor {
        let names: Vec<_> = self.objects.iter().map(|(name, _)| tables.name(*name)).collect();
        tables.layout.highest_floor(names.iter())
    }

    fn body(&self, tables: &Tables, name: &BlobKey) -> Option<Bytes> {
        let name = tables.name_number(name);
        let at = self.objects.binary_search_by_key(&name, |object| object.0).ok()?;
        Some(tables.body(self.objects[at].1))
    }

    fn put(&mut self, tables: &Tables, name: &BlobKey, body: &Bytes) -> Put {
        let object = (tables.name_number(name), tables.body_number(body));
        let Err(at) = self.objects.binary_search_by_key(&object.0, |object| object.0) else {
            return Put::Exists;
        };
        match tables.layout.name(name) {
            Some(Name::Manifest(snapshot)) => {
                let (epoch, number) = (byte(snapshot.epoch.get()), byte(snapshot.number.get()));
                let entry = Entry::decode(&tables.layout, snapshot, body).expect("what is put can be read");
                // A put that lands again after its object was swept publishes nothing: its name had its day.
                if let Entry::Published(manifest) = entry
                    && !self.published.iter().any(|known| (known.epoch, known.number) == (epoch, number))
                {
                    let publication = Publication {
                        epoch,
                        number,
                        tenure: crate::tables::number(manifest.tenure_id),
                        ledger: tables.ledger(manifest.parts[0].sha256),
                        dead: epoch <= self.forgotten,
                    };
                    self.published.push(publication);
                }
            }
            Some(Name::Base(epoch)) => {
                if let Base::Pinned(pin) = Base::decode(name, body).expect("what is put can be read") {
                    let (epoch, tenure) = (byte(epoch.get()), number(pin.tenure_id));
                    let after = byte(self.published.len() as u64);
                    self.pinned.push(Pinned { epoch, tenure, after });
                }
            }
            _ => {}
        }
        self.objects.insert(at, object);
        Put::Created
    }

    /// A put whose caller sees an error, and which is executed later or never.
    pub(crate) fn defer(&mut self, tables: &Tables, deed: &Deed) {
        let (name, body) = match deed {
            Deed::Ask { ask: Ask::Put { key, body }, .. } => (key, body),
            Deed::Ask { ask: Ask::Upload(key), image: Some(image), .. } => (key, image),
            _ => return,
        };
        self.late.push((tables.name_number(name), tables.body_number(body)));
        self.late.sort_unstable();
    }

    fn remove(&mut self, name: u16) -> u64 {
        let before = self.objects.len();
        self.objects.retain(|object| object.0 != name);
        (before - self.objects.len()) as u64
    }

    /// The names in an epoch.
    pub(crate) fn in_epoch(&self, tables: &Tables, epoch: Epoch) -> Vec<u16> {
        let names = self.objects.iter().map(|object| object.0);
        let of = |name: u16| match tables.is(name) {
            Some(Name::Base(at) | Name::ForeignIn(at)) => at == epoch,
            Some(Name::Manifest(snapshot) | Name::Image(snapshot, _)) => snapshot.epoch == epoch,
            Some(Name::Foreign) | None => false,
        };
        names.filter(|name| of(*name)).collect()
    }

    /// One object of an epoch goes, by a deletion of all that has not got further.
    pub(crate) fn delete_one(&mut self, tables: &Tables, epoch: Epoch, which: usize) {
        if let Some(name) = self.in_epoch(tables, epoch).get(which) {
            self.remove(*name);
        }
    }

    /// The tenant's objects in the order in which a store lists them.
    pub(crate) fn listed(&self, tables: &Tables) -> Vec<Object> {
        let mut listed: Vec<_> =
            self.objects.iter().copied().filter(|object| tables.is(object.0).is_some()).collect();
        listed.sort_by_cached_key(|object| tables.name(object.0));
        listed
    }

    fn listing(tables: &Tables, listed: &[Object]) -> Listing {
        let entry = |object: &Object| BlobEntry {
            key: tables.name(object.0),
            len: tables.body(object.1).len() as u64,
        };
        Listing::new(&tables.layout, &listed.iter().map(entry).collect::<Vec<_>>())
    }

    /// One atomic step.
    pub(crate) fn perform(&mut self, tables: &Tables, deed: &Deed) -> Answer {
        match deed {
            Deed::Ask { ask, image, repeated } => self.ask(tables, ask, image.as_ref(), *repeated),
            Deed::RestOfList { page, after } => {
                let last = tables.name(*after);
                let rest = self.listed(tables).into_iter().filter(|object| tables.name(object.0) > last);
                let listed: Vec<_> = page.iter().copied().chain(rest).collect();
                Answer::Listed(Self::listing(tables, &listed))
            }
            Deed::AdvanceAnyway { beyond } => {
                self.row.epoch = self.row.epoch.max(byte(beyond.get())) + 1;
                self.remember_row();
                Answer::Advanced(Some(epoch(self.row.epoch)))
            }
            Deed::Known(answer) => answer.clone(),
        }
    }

    fn ask(&mut self, tables: &Tables, ask: &Ask, image: Option<&Bytes>, repeated: bool) -> Answer {
        match ask {
            Ask::ReadFloors => Answer::Floors(self.floor(tables)),
            Ask::List => Answer::Listed(Self::listing(tables, &self.listed(tables))),
            Ask::Get(key) => Answer::Got(self.body(tables, key)),
            Ask::Put { key, body } => Answer::Put(self.put(tables, key, body)),
            Ask::Upload(key) => Answer::Put(self.put(tables, key, image.expect("an upload has an image"))),
            Ask::Fetch(manifest) => match self.missing(tables, manifest) {
                None => Answer::Fetched,
                Some(key) => Answer::PartMissing(key),
            },
            Ask::Advance { claim, beyond } => Answer::Advanced(self.advance(claim, *beyond, repeated)),
            Ask::Renew(claim) => Answer::Renewed(self.is_of(claim)),
            Ask::ReadRow => Answer::Row(Ok(self.lease_row(tables))),
            // Clocks lie without bound.
            Ask::Held => Answer::Held(Ok(())),
            Ask::RaiseFloor(claim) => Answer::FloorRaised(self.is_of(claim).then(|| {
                self.row.floor = self.row.floor.max(byte(claim.epoch.get()));
                if let Err(at) = self.raised.binary_search(&self.row.floor) {
                    self.raised.insert(at, self.row.floor);
                }
                self.remember_row();
                Floor::at(epoch(self.row.floor))
            })),
            Ask::DeleteEpoch(epoch) => {
                let names = self.in_epoch(tables, *epoch);
                Answer::Deleted(names.into_iter().map(|name| self.remove(name)).sum())
            }
            Ask::Delete(key) => Answer::Deleted(self.remove(tables.name_number(key))),
        }
    }

    /// As the driver does it: one whose answer was lost is recognised in the row by its tenure's id.
    fn advance(&mut self, claim: &Claim, beyond: Epoch, repeated: bool) -> Option<Epoch> {
        if self.is_of(claim) {
            self.row.epoch = self.row.epoch.max(byte(beyond.get())) + 1;
            self.remember_row();
            return Some(epoch(self.row.epoch));
        }
        let ours = repeated && self.row.tenure == number(claim.tenure);
        (ours && u64::from(self.row.epoch) > beyond.get()).then(|| epoch(self.row.epoch))
    }

    fn missing(&self, tables: &Tables, manifest: &Manifest) -> Option<BlobKey> {
        manifest.objects().find(|object| self.body(tables, object).is_none()).cloned()
    }

    fn lease_row(&self, tables: &Tables) -> Option<LeaseRow> {
        let Row { epoch: at, tenure, floor } = self.row;
        let owner = (tenure > 0).then(|| Owner {
            replica: replica(tenure),
            endpoint: None,
            tenure: id(tenure),
            remaining: std::time::Duration::ZERO,
        });
        let floor = Floor::new(floor.into()).expect("a floor");
        let key = tables.key().clone();
        (at > 0).then(|| LeaseRow {
            key,
            epoch: epoch(at),
            owner,
            floor,
            forgotten_at: None,
            receipt: None,
            paused_at: None,
        })
    }

    /// Judges and remembers what `tenure` came to. `rows_hold`: in this search the row never falls back. `ledger`: what the
    /// tenure says it published.
    pub(crate) fn note(
        &mut self,
        tenure: u8,
        told: Told,
        ledger: Option<&Ledger>,
        rows_hold: bool,
    ) -> Option<Rule> {
        match told {
            Told::Began { epoch, floor, from } => self.began(tenure, epoch, floor, from),
            Told::Acknowledged { epoch, number } => {
                let published =
                    self.published.iter().find(|known| (known.epoch, known.number) == (epoch, number));
                let counts = published.is_some_and(|known| {
                    known.tenure == tenure && Some(&known.ledger) == ledger && !known.dead
                });
                // With the row set back, what a forget took is acknowledged by whom a lying clock lets, and by nobody else.
                let forgotten = epoch <= self.forgotten && !rows_hold;
                (!counts && !forgotten).then_some(Rule::AcknowledgedUnpublished)
            }
            Told::Forgotten { floor } => {
                self.forgotten = self.forgotten.max(floor);
                let served = self.served.iter().any(|by| by.epoch > floor && by.from > 0 && by.from <= floor);
                served.then_some(Rule::ForgottenServed)
            }
            Told::Fenced(_) => (rows_hold && self.row.tenure == tenure).then_some(Rule::OwnerUndone),
            Told::Resumed { superseded } => superseded.then_some(Rule::SupersededResumed),
            Told::Damaged => Some(Rule::NotThrough),
        }
    }

    /// Rules 1 to 4 of protocol.md, at the moment at which a tenure begins to serve.
    fn began(&mut self, tenure: u8, epoch: u8, floor: u8, from: Option<(u8, u8)>) -> Option<Rule> {
        let mut pins = self.pinned.iter().filter(|pinned| pinned.epoch == epoch);
        let shared = self.served.iter().any(|served| served.epoch == epoch && served.tenure != tenure);
        if shared || pins.clone().any(|pinned| pinned.tenure != tenure) {
            return Some(Rule::EpochShared);
        }
        let Some(pin) = pins.next_back() else { return Some(Rule::EpochShared) };
        if epoch <= self.forgotten || from.is_some_and(|(epoch, _)| epoch <= self.forgotten) {
            return Some(Rule::ForgottenServed);
        }
        let (before, after) = self.published.split_at(usize::from(pin.after));
        let at = |known: &Publication| (known.epoch, known.number);
        if after.iter().any(|known| Some(at(known)) == from) {
            return Some(Rule::SupersededImageRead);
        }
        // A forget that has raised its floor in a row that was set back since covers what is below it or does not: whether
        // anybody still knows of it decides.
        let newest_above = |floor: u8| before.iter().rfind(|known| known.epoch > floor).map(at);
        let expected = |raised: &u8| *raised >= floor && newest_above(*raised) == from;
        let highest = self.raised.last().copied().unwrap_or_default();
        let unknown_floor = highest < floor && newest_above(highest) == from;
        if !unknown_floor && !self.raised.iter().any(expected) {
            return Some(Rule::PublishedWriteLost);
        }
        self.served.push(Served { epoch, tenure, from: from.map_or(0, |(epoch, _)| epoch) });
        None
    }

    /// The row is given back, if it is this claim's.
    pub(crate) fn release(&mut self, claim: &Claim) {
        if self.is_of(claim) {
            self.row.tenure = 0;
        }
    }

    /// Whether a publish holds exactly this.
    pub(crate) fn has(&self, ledger: &Ledger) -> bool {
        ledger.is_empty() || self.published.iter().any(|known| known.ledger == *ledger)
    }

    /// What is there, for people.
    pub(crate) fn names(&self, tables: &Tables) -> Vec<String> {
        self.objects.iter().map(|object| tables.name(object.0).as_str().to_owned()).collect()
    }
}
