//! Names, bodies and ledgers under small numbers.

use bytes::Bytes;
use leasehold_blob::BlobKey;
use leasehold_lease::Claim;
use leasehold_snapshot::{Layout, Name, format::Digest};
use leasehold_types::{Epoch, LeaseKey, ReplicaId, TenureId, Timestamp};

use crate::intern::{Interner, Memo};

/// What a ledger holds, as far as the protocol cares: the writes in it, in order.
pub(crate) type Ledger = Vec<u8>;

/// An object's name and body.
pub(crate) type Object = (u16, u16);

/// The replicas' calendar. It stands still: no rule rests on it.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// What every state of one search shares.
#[derive(Debug)]
pub(crate) struct Tables {
    key: LeaseKey,
    pub(crate) layout: Layout,
    names: Interner<BlobKey>,
    bodies: Interner<Bytes>,
    ledgers: Memo<Digest, Ledger>,
}

fn small(number: u32) -> u16 {
    u16::try_from(number).expect("a bounded search has fewer than 2^16 names and bodies")
}

impl Tables {
    pub(crate) fn new() -> Self {
        let key: LeaseKey = "acme/u".parse().expect("a lease key");
        let layout = Layout::new(&key);
        Self {
            key,
            layout,
            names: Interner::default(),
            bodies: Interner::default(),
            ledgers: Memo::default(),
        }
    }

    pub(crate) fn name_number(&self, name: &BlobKey) -> u16 {
        small(self.names.number(name.clone()))
    }

    pub(crate) fn name(&self, number: u16) -> BlobKey {
        self.names.value(number.into()).as_ref().clone()
    }

    pub(crate) fn body_number(&self, body: &Bytes) -> u16 {
        small(self.bodies.number(body.clone()))
    }

    pub(crate) fn body(&self, number: u16) -> Bytes {
        self.bodies.value(number.into()).as_ref().clone()
    }

    /// What an object is by its name; `None`: a floor.
    pub(crate) fn is(&self, name: u16) -> Option<Name> {
        self.layout.name(&self.name(name))
    }

    /// The image of a ledger, which is known by its digest from then on.
    pub(crate) fn image(&self, ledger: &Ledger) -> (Bytes, Digest) {
        let image = Bytes::from(serde_json::to_vec(ledger).expect("numbers are JSON"));
        let digest = Digest::of(&image);
        self.ledgers.get(digest, |_| ledger.clone());
        (image, digest)
    }

    /// The ledger of an image.
    pub(crate) fn ledger(&self, digest: Digest) -> Ledger {
        self.ledgers.get(digest, |digest| panic!("{digest} is no image's"))
    }

    /// The claim of the tenure of this number.
    pub(crate) fn claim(&self, tenure: u8, at: u8) -> Claim {
        Claim { key: self.key.clone(), replica: replica(tenure), tenure: id(tenure), epoch: epoch(at) }
    }

    pub(crate) fn key(&self) -> &LeaseKey {
        &self.key
    }
}

pub(crate) fn replica(tenure: u8) -> ReplicaId {
    format!("r{tenure}").parse().expect("a replica id")
}

pub(crate) fn id(tenure: u8) -> TenureId {
    TenureId::new(uuid::Uuid::from_u128(tenure.into()))
}

/// The number behind [`id`].
pub(crate) fn number(id: TenureId) -> u8 {
    u8::try_from(id.as_uuid().as_u128()).expect("a tenure of this search")
}

pub(crate) fn epoch(number: u8) -> Epoch {
    Epoch::new(number.into()).expect("an epoch")
}

/// An epoch, a floor or a snapshot's number as a state keeps it.
pub(crate) fn byte(number: u64) -> u8 {
    u8::try_from(number).expect("a bounded search has fewer than 256 epochs")
}
