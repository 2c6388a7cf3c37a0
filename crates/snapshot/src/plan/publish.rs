//! How an image comes to count: protocol.md, "Publish".

use leasehold_blob::{BlobKey, Put};
use leasehold_lease::Claim;
use leasehold_types::{AttemptId, FencedReason, Floor, Position, Timestamp};

use super::step::{Answer, Ask, Step, illegal};
use crate::{
    Layout, OwnManifests, SnapshotError, SnapshotRef,
    format::{Content, Digest, Encoding, Entry, Format, Manifest, Part, PartKind},
};

/// How many numbers one publish tries: each that was used was an earlier attempt of ours whose answer was lost.
const TRIES_MAX: u32 = 64;

/// An image that is to count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// The id of this publish.
    pub attempt: AttemptId,
    /// The encoded image.
    pub image: EncodedImage,
    /// Whether the tenure means it as its last.
    pub closed: bool,
    /// Bytes per page of the database.
    pub page_size: u32,
    /// Pages of the database.
    pub pages: u64,
    /// The last event in it.
    pub position: Position,
    /// The replica's calendar.
    pub at: Timestamp,
}

/// An encoded image, ready to be put.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncodedImage {
    /// Its bytes, where it is to lie in the manifest; otherwise it is put as an object of its own.
    pub inline: Option<bytes::Bytes>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The digest of those.
    pub sha256: Digest,
    /// How it is encoded.
    pub encoding: Encoding,
}

/// A publish as a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PublishPlan {
    layout: Layout,
    claim: Claim,
    draft: Draft,
    /// The image's object; `None` when it is inline. Keeps its name when the number turns out to be used.
    image: Option<BlobKey>,
    own: OwnManifests,
    tries: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Uploading,
    /// The manifest under the next number.
    Putting,
    /// Something lies there.
    ReadingBack,
    /// Something lay there and is gone.
    Gone,
    /// The manifest is in. A forget removes fences, so a stale owner must look before it acknowledges.
    Row,
    /// The lease store did not answer: the store's own witness does.
    Floors,
    /// Contract row H3.
    Deadline,
    Done,
}

impl PublishPlan {
    /// The publish of `draft` by the tenure of `claim`, which knows `own`.
    #[must_use]
    pub fn new(claim: Claim, own: OwnManifests, draft: Draft) -> Self {
        let layout = Layout::new(&claim.key);
        let first = SnapshotRef { epoch: claim.epoch, number: own.next() };
        let image = draft.image.inline.is_none().then(|| layout.image(first, draft.attempt));
        let state = if image.is_some() { State::Uploading } else { State::Putting };
        Self { layout, claim, draft, image, own, tries: 0, state }
    }

    /// What the tenure knows to be its own by now, whatever comes of this publish.
    #[must_use]
    pub const fn own(&self) -> &OwnManifests {
        &self.own
    }

    /// What is to be done now; at the end, the number that was published.
    #[must_use]
    pub fn next(&self) -> Step<crate::SnapshotNumber> {
        Step::Ask(match self.state {
            State::Uploading => match &self.image {
                Some(image) => Ask::Upload(image.clone()),
                None => return Step::Ask(self.put()),
            },
            State::Putting => self.put(),
            State::ReadingBack => Ask::Get(self.layout.manifest(self.snapshot())),
            State::Gone | State::Floors => Ask::ReadFloors,
            State::Row => Ask::ReadRow,
            State::Deadline => Ask::Held,
            State::Done => {
                let newest = self.own.newest().map(|own| own.number);
                return Step::Done(newest.unwrap_or(self.own.next()));
            }
        })
    }

    /// Takes the answer to what [`Self::next`] asked. After an error the plan is over; [`Self::own`] stays true.
    pub fn feed(&mut self, answer: Answer) -> Result<(), SnapshotError> {
        self.state = match (self.state, answer) {
            // The image's name is this attempt's alone, so what is there is ours.
            (State::Uploading, Answer::Put(_)) => State::Putting,
            (State::Putting, Answer::Put(Put::Created)) => {
                let manifest = self.manifest();
                self.note(&manifest)?;
                State::Row
            }
            (State::Putting, Answer::Put(Put::Exists)) => State::ReadingBack,
            (State::ReadingBack, Answer::Got(None)) => State::Gone,
            (State::ReadingBack, Answer::Got(Some(body))) => {
                match Entry::decode(&self.layout, self.snapshot(), &body)? {
                    Entry::Sealed(_) => return Err(self.fenced(FencedReason::Sealed)),
                    Entry::Published(other) if other.tenure_id != self.claim.tenure => {
                        return Err(self.fenced(FencedReason::Lost));
                    }
                    Entry::Published(ours) => {
                        self.note(&ours)?;
                        if ours.attempt == self.draft.attempt { State::Row } else { self.again()? }
                    }
                }
            }
            (State::Gone, Answer::Floors(floor)) => {
                self.below(floor)?;
                self.again()?
            }
            (State::Row, Answer::Row(Err(()))) => State::Floors,
            (State::Row, Answer::Row(Ok(row))) => {
                let ours =
                    row.is_some_and(|row| row.is_of(&self.claim) && !row.floor.covers(self.claim.epoch));
                if !ours {
                    return Err(self.fenced(FencedReason::Lost));
                }
                State::Deadline
            }
            (State::Floors, Answer::Floors(floor)) => {
                self.below(floor)?;
                State::Deadline
            }
            (State::Deadline, Answer::Held(held)) => {
                held.map_err(|reason| self.fenced(reason))?;
                State::Done
            }
            (_, answer) => return Err(illegal("publish", &self.claim.key, &self.next(), &answer)),
        };
        Ok(())
    }

    fn snapshot(&self) -> SnapshotRef {
        SnapshotRef { epoch: self.claim.epoch, number: self.own.next() }
    }

    fn put(&self) -> Ask {
        Ask::Put { key: self.layout.manifest(self.snapshot()), body: self.manifest().encode() }
    }

    fn manifest(&self) -> Manifest {
        let SnapshotRef { epoch, number } = self.snapshot();
        let Draft { attempt, image, closed, page_size, pages, position, at } = &self.draft;
        let content = match (&self.image, &image.inline) {
            (Some(object), _) => Content::Object(object.clone()),
            (None, inline) => Content::Inline(inline.clone().unwrap_or_default()),
        };
        let EncodedImage { bytes, sha256, encoding, .. } = *image;
        Manifest {
            format: Format,
            tenure_id: self.claim.tenure,
            attempt: *attempt,
            key: self.claim.key.clone(),
            epoch,
            number,
            closed: *closed,
            parts: vec![Part { content, kind: PartKind::Image, bytes, sha256, encoding }],
            page_size: *page_size,
            pages: *pages,
            position: *position,
            at: *at,
            replica: self.claim.replica.clone(),
        }
    }

    fn note(&mut self, manifest: &Manifest) -> Result<(), SnapshotError> {
        let object = self.layout.manifest(manifest.snapshot());
        self.own.note(manifest).ok_or_else(|| SnapshotError::damaged(&object, "there is no number above it"))
    }

    fn again(&mut self) -> Result<State, SnapshotError> {
        self.tries += 1;
        if self.tries > TRIES_MAX {
            let (action, key) = ("publish", self.claim.key.clone());
            return Err(SnapshotError::Contended { action, key, tries: self.tries });
        }
        Ok(State::Putting)
    }

    fn below(&self, floor: Floor) -> Result<(), SnapshotError> {
        if floor.covers(self.claim.epoch) { Err(self.fenced(FencedReason::Lost)) } else { Ok(()) }
    }

    fn fenced(&self, reason: FencedReason) -> SnapshotError {
        SnapshotError::Fenced { key: self.claim.key.clone(), epoch: self.claim.epoch, reason }
    }
}
