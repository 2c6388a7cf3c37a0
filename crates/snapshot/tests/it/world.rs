//! A store and a row in memory, against which plans are driven step by step.

use std::collections::BTreeMap;

use bytes::Bytes;
use leasehold_blob::{BlobEntry, BlobKey, Put};
use leasehold_lease::{Claim, LeaseRow, Owner};
use leasehold_snapshot::{
    Layout, Listing, OwnManifests, SnapshotError, SnapshotNumber, SnapshotRef,
    format::{Content, Digest, Encoding, Entry, Manifest},
    plan::{
        Answer, Ask, Draft, EncodedImage, ForgetPlan, Forgotten, Keep, OpenPlan, Opening, PublishPlan, Start,
        Step, SweepPlan, Swept,
    },
};
use leasehold_types::{AttemptId, Epoch, Floor, LeaseKey, Position, TenureId, Timestamp};

/// What a ledger holds, as far as these suites care: what was written, in order.
pub(crate) type Ledger = Vec<u32>;

pub(crate) fn key() -> LeaseKey {
    "acme/u".parse().unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

pub(crate) fn at(epoch_number: u64, number: u64) -> SnapshotRef {
    SnapshotRef { epoch: epoch(epoch_number), number: SnapshotNumber::new(number).unwrap() }
}

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// Sweeps that keep every fence and nothing else.
pub(crate) const KEEP: Keep = Keep { fences: std::time::Duration::from_secs(7 * 86_400), superseded: 0 };

/// The row, as the protocol sees it: time is left out, so that a lease can be taken at any moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) epoch: u64,
    pub(crate) tenure: Option<TenureId>,
    pub(crate) floor: Floor,
}

/// A manifest that was put.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    pub(crate) tick: u64,
    pub(crate) manifest: Manifest,
    /// What its parts held then; `None` where they had been deleted by then.
    pub(crate) ledger: Option<Ledger>,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) layout: Layout,
    pub(crate) objects: BTreeMap<BlobKey, Bytes>,
    pub(crate) row: Row,
    pub(crate) tenures: u128,
    pub(crate) attempts: u64,
    /// Every manifest in the order in which they were put, deleted or not.
    pub(crate) published: Vec<Publication>,
    /// Every pin likewise: when, where, whose.
    pub(crate) pins: Vec<(u64, Epoch, TenureId)>,
    /// Counts steps.
    pub(crate) tick: u64,
    pub(crate) asked: Vec<&'static str>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            layout: Layout::new(&key()),
            objects: BTreeMap::new(),
            row: Row { epoch: 0, tenure: None, floor: Floor::NONE },
            tenures: 0,
            attempts: 0,
            published: Vec::new(),
            pins: Vec::new(),
            tick: 0,
            asked: Vec::new(),
        }
    }

    pub(crate) fn attempt(&mut self) -> AttemptId {
        self.attempts += 1;
        AttemptId::new(self.attempts)
    }

    /// A new tenure takes the row, whoever has it.
    pub(crate) fn acquire(&mut self) -> Claim {
        self.tenures += 1;
        let tenure = TenureId::new(uuid::Uuid::from_u128(self.tenures));
        self.row = Row { epoch: self.row.epoch + 1, tenure: Some(tenure), floor: self.row.floor };
        let replica = format!("r{}", self.tenures).parse().unwrap();
        Claim { key: key(), replica, tenure, epoch: epoch(self.row.epoch) }
    }

    pub(crate) fn is_of(&self, claim: &Claim) -> bool {
        self.row.tenure == Some(claim.tenure) && self.row.epoch == claim.epoch.get()
    }

    /// Puts `body` unless the name is taken, and notes what it means.
    pub(crate) fn put(&mut self, object: &BlobKey, body: Bytes) -> Put {
        use leasehold_snapshot::{Name, format::Base};
        if self.objects.contains_key(object) {
            return Put::Exists;
        }
        match self.layout.name(object) {
            Some(Name::Manifest(snapshot)) => {
                // A put that lands again after its object was swept publishes nothing: its name had its day.
                let first = !self.published.iter().any(|published| published.manifest.snapshot() == snapshot);
                if let Entry::Published(manifest) = Entry::decode(&self.layout, snapshot, &body).unwrap()
                    && first
                {
                    let ledger = self.ledger_of(&manifest).ok();
                    self.published.push(Publication { tick: self.tick, manifest: *manifest, ledger });
                }
            }
            Some(Name::Base(epoch)) => {
                if let Base::Pinned(pin) = Base::decode(object, &body).unwrap() {
                    self.pins.push((self.tick, epoch, pin.tenure_id));
                }
            }
            _ => {}
        }
        self.objects.insert(object.clone(), body);
        Put::Created
    }

    pub(crate) fn listing(&self) -> Listing {
        let under = self.objects.iter().filter(|(key, _)| key.under(self.layout.tenant()).is_some());
        let entries: Vec<_> =
            under.map(|(key, body)| BlobEntry { key: key.clone(), len: body.len() as u64 }).collect();
        Listing::new(&self.layout, &entries)
    }

    pub(crate) fn floor(&self) -> Floor {
        self.layout.highest_floor(self.objects.keys())
    }

    pub(crate) fn keys_in(&self, epoch: Epoch) -> Vec<BlobKey> {
        let prefix = self.layout.epoch(epoch);
        self.objects.keys().filter(|key| key.under(&prefix).is_some()).cloned().collect()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let prefix = self.layout.tenant();
        self.objects.keys().filter_map(|key| key.under(prefix)).collect()
    }

    /// What a snapshot holds; `None` where a part is not in the store.
    pub(crate) fn ledger_of(&self, manifest: &Manifest) -> Result<Ledger, BlobKey> {
        let part = &manifest.parts[0];
        let body = match &part.content {
            Content::Inline(bytes) => bytes.clone(),
            Content::Object(key) => self.objects.get(key).ok_or_else(|| key.clone())?.clone(),
        };
        assert_eq!(Digest::of(&body), part.sha256);
        Ok(serde_json::from_slice(&body).unwrap())
    }

    /// One atomic step. `image` is what an upload puts.
    pub(crate) fn perform(&mut self, ask: &Ask, image: Option<&Bytes>) -> Answer {
        self.tick += 1;
        self.asked.push(match ask {
            Ask::ReadFloors => "floors",
            Ask::List => "list",
            Ask::Get(_) => "get",
            Ask::Put { .. } => "put",
            Ask::Upload(_) => "upload",
            Ask::Fetch(_) => "fetch",
            Ask::Advance { .. } => "advance",
            Ask::Renew(_) => "renew",
            Ask::ReadRow => "row",
            Ask::Held => "held",
            Ask::RaiseFloor(_) => "raise",
            Ask::DeleteEpoch(_) | Ask::Delete(_) => "delete",
        });
        match ask {
            Ask::ReadFloors => Answer::Floors(self.floor()),
            Ask::List => Answer::Listed(self.listing()),
            Ask::Get(key) => Answer::Got(self.objects.get(key).cloned()),
            Ask::Put { key, body } => Answer::Put(self.put(key, body.clone())),
            Ask::Upload(key) => Answer::Put(self.put(key, image.unwrap().clone())),
            Ask::Fetch(manifest) => match self.ledger_of(manifest) {
                Ok(_) => Answer::Fetched,
                Err(key) => Answer::PartMissing(key),
            },
            Ask::Advance { claim, beyond } => Answer::Advanced(self.is_of(claim).then(|| {
                self.row.epoch = self.row.epoch.max(beyond.get()) + 1;
                epoch(self.row.epoch)
            })),
            Ask::Renew(claim) => Answer::Renewed(self.is_of(claim)),
            Ask::ReadRow => Answer::Row(Ok(self.lease_row())),
            Ask::Held => Answer::Held(Ok(())),
            Ask::RaiseFloor(claim) => Answer::FloorRaised(self.is_of(claim).then(|| {
                self.row.floor = self.row.floor.max(Floor::at(claim.epoch));
                self.row.floor
            })),
            Ask::DeleteEpoch(epoch) => {
                let keys = self.keys_in(*epoch);
                for key in &keys {
                    self.objects.remove(key);
                }
                Answer::Deleted(keys.len() as u64)
            }
            Ask::Delete(key) => Answer::Deleted(u64::from(self.objects.remove(key).is_some())),
        }
    }

    fn lease_row(&self) -> Option<LeaseRow> {
        let epoch = Epoch::new(self.row.epoch).ok()?;
        let owner = self.row.tenure.map(|tenure| Owner {
            replica: format!("r{}", tenure.as_uuid().as_u128()).parse().unwrap(),
            endpoint: None,
            tenure,
            remaining: std::time::Duration::ZERO,
        });
        let floor = self.row.floor;
        Some(LeaseRow { key: key(), epoch, owner, floor, forgotten_at: None, receipt: None, paused_at: None })
    }

    pub(crate) fn open_plan(&mut self, claim: &Claim) -> OpenPlan {
        let (floor, attempt) = (self.row.floor, self.attempt());
        OpenPlan::new(Opening { claim: claim.clone(), floor, attempt, at: NOW })
    }

    pub(crate) fn open(&mut self, claim: &Claim) -> Result<Start, SnapshotError> {
        let mut plan = self.open_plan(claim);
        loop {
            match plan.next() {
                Step::Ask(ask) => plan.feed(self.perform(&ask, None))?,
                Step::Done(start) => return Ok(start),
            }
        }
    }

    pub(crate) fn draft(&mut self, ledger: &Ledger, inline: bool) -> (Draft, Bytes) {
        let body = Bytes::from(serde_json::to_vec(ledger).unwrap());
        let draft = Draft {
            attempt: self.attempt(),
            image: EncodedImage {
                inline: inline.then(|| body.clone()),
                bytes: body.len() as u64,
                sha256: Digest::of(&body),
                encoding: Encoding::Plain,
            },
            closed: false,
            page_size: 4096,
            pages: 1,
            position: Position { epoch: epoch(1), seq: ledger.len() as u64 },
            at: NOW,
        };
        (draft, body)
    }

    pub(crate) fn publish(
        &mut self,
        claim: &Claim,
        own: &mut OwnManifests,
        ledger: &Ledger,
    ) -> Result<SnapshotNumber, SnapshotError> {
        let (draft, body) = self.draft(ledger, false);
        let mut plan = PublishPlan::new(claim.clone(), own.clone(), draft);
        loop {
            match plan.next() {
                Step::Ask(ask) => {
                    let answer = self.perform(&ask, Some(&body));
                    let fed = plan.feed(answer);
                    own.clone_from(plan.own());
                    fed?;
                }
                Step::Done(number) => return Ok(number),
            }
        }
    }

    pub(crate) fn forget(&mut self, claim: &Claim) -> Result<Forgotten, SnapshotError> {
        let mut plan = ForgetPlan::new(claim.clone(), NOW);
        loop {
            match plan.next() {
                Step::Ask(ask) => plan.feed(self.perform(&ask, None))?,
                Step::Done(forgotten) => return Ok(forgotten),
            }
        }
    }

    pub(crate) fn sweep(
        &mut self,
        claim: &Claim,
        own: &OwnManifests,
        keep: Keep,
        now: Timestamp,
    ) -> Result<Swept, SnapshotError> {
        let newest = own.newest().cloned();
        let mut plan = SweepPlan::new(claim.clone(), newest, keep, now);
        loop {
            match plan.next() {
                Step::Ask(ask) => plan.feed(self.perform(&ask, None))?,
                Step::Done(swept) => return Ok(swept),
            }
        }
    }
}
