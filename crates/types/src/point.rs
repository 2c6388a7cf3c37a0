//! The steps between which a process can be taken away, by name.
//!
//! Every step of an opening, a publish, a handoff, a forget, a sweep and a renewal is an [`Act`]; before and after each of
//! them the driver that performs it tells a [`Points`], as it is told the time by a clock. In the product that is
//! [`NoPoints`]. In the proof (`crates/proof`) it is what kills or stops a replica exactly there (decision 0026).
//!
//! An append has no point: what comes between its gate and its commit is the ledger's own, and is not made slower.

use std::{fmt, future::Future, str::FromStr};

use crate::LeaseKey;

macro_rules! acts {
    ($($(#[doc = $doc:literal])+ $act:ident => $name:literal,)+) => {
        /// One step of a protocol, in the store, in the lease's row or on the local disk. Names are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Act {
            $($(#[doc = $doc])+ $act,)+
        }

        impl Act {
            /// Every act, operation by operation, in about the order in which they come.
            pub const ALL: &[Self] = &[$(Self::$act),+];

            /// The name: `<operation>.<what is done>`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$act => $name,)+
                }
            }
        }
    };
}

acts! {
    /// Takes the lease's row.
    OpenAcquire => "open.acquire",
    /// Clears and makes the tenant's local directory.
    OpenRoot => "open.root",
    /// Reads the floor objects, at the beginning and once more at the end.
    OpenFloors => "open.floors",
    /// Puts the floor object that the row's floor has not got.
    OpenFloorObject => "open.floor_object",
    /// Raises the row's epoch past what the store has seen.
    OpenAdvance => "open.advance",
    /// Lists the tenant's objects.
    OpenList => "open.list",
    /// Reads a manifest's name: a manifest or a seal.
    OpenReadEntry => "open.read_entry",
    /// Reads a base.
    OpenReadBase => "open.read_base",
    /// Seals the predecessor's next manifest.
    OpenSeal => "open.seal",
    /// Seals the base of an epoch that nobody began.
    OpenFence => "open.fence",
    /// Pins what it starts from: puts its own base.
    OpenPin => "open.pin",
    /// Downloads, verifies and decodes the image.
    OpenFetch => "open.fetch",
    /// Renews once by the row before it serves.
    OpenRenew => "open.renew",
    /// Keeps what it finds on the local path for an operator.
    OpenSalvage => "open.salvage",
    /// Puts the restored file on the local path, or clears that.
    OpenInstall => "open.install",
    /// Opens the ledger's file, which writes this tenure into it.
    OpenLedger => "open.ledger",
    /// Opens the gate.
    OpenServe => "open.serve",

    /// Takes an image of the ledger.
    PublishImage => "publish.image",
    /// Encodes it.
    PublishEncode => "publish.encode",
    /// Puts it.
    PublishUpload => "publish.upload",
    /// Puts the manifest: from here on it counts.
    PublishManifest => "publish.manifest",
    /// Reads what lies under the manifest's name already.
    PublishReadBack => "publish.read_back",
    /// Reads the row before it is called published.
    PublishRow => "publish.row",
    /// Reads the floor objects where the row could not be read.
    PublishFloors => "publish.floors",
    /// Asks the deadline before it is called published.
    PublishDeadline => "publish.deadline",

    /// Closes the gate to new calls.
    HandoffGate => "handoff.gate",
    /// Closes the gate to running work too.
    HandoffFlush => "handoff.flush",
    /// Takes a handoff's last image.
    HandoffImage => "handoff.image",
    /// Encodes it.
    HandoffEncode => "handoff.encode",
    /// Puts it.
    HandoffUpload => "handoff.upload",
    /// Puts its manifest, the tenure's last.
    HandoffManifest => "handoff.manifest",
    /// Reads what lies under the manifest's name already.
    HandoffReadBack => "handoff.read_back",
    /// Reads the row before it is called published.
    HandoffRow => "handoff.row",
    /// Reads the floor objects where the row could not be read.
    HandoffFloors => "handoff.floors",
    /// Asks the deadline before it is called published.
    HandoffDeadline => "handoff.deadline",
    /// Opens the gate again after a handoff that failed.
    HandoffReopen => "handoff.reopen",

    /// Closes the gate because the lease is given back as it is.
    AbandonGate => "abandon.gate",
    /// Keeps what was not published for an operator before the lease goes.
    ReleaseSalvage => "release.salvage",
    /// Removes the local ledger whose content is published.
    ReleaseDiscard => "release.discard",
    /// Gives the row back.
    ReleaseRow => "release.row",
    /// Ends the tenure.
    ReleaseEnd => "release.end",
    /// Ends a tenure whose tenant is another's.
    LostGate => "lost.gate",
    /// Keeps what was not published by a tenure that is lost.
    LostSalvage => "lost.salvage",

    /// Closes the gate for good.
    ForgetGate => "forget.gate",
    /// Raises the floor in the row: from here on there is no way back.
    ForgetRaiseFloor => "forget.raise_floor",
    /// Puts the floor object.
    ForgetFloorObject => "forget.floor_object",
    /// Lists what is left.
    ForgetList => "forget.list",
    /// Deletes an epoch.
    ForgetDelete => "forget.delete",
    /// Reads the base of a younger tenure: whether that knew of the floor.
    ForgetReadBase => "forget.read_base",
    /// Removes the local directory, salvage with it.
    ForgetLocal => "forget.local",
    /// Stores the receipt in the row.
    ForgetReceipt => "forget.receipt",

    /// Puts the floor object of a forgotten tenant again.
    RecheckFloorObject => "recheck.floor_object",
    /// Lists a forgotten tenant again.
    RecheckList => "recheck.list",
    /// Deletes what a late upload left of it.
    RecheckDelete => "recheck.delete",
    /// Notes when it is looked at next.
    RecheckSchedule => "recheck.schedule",
    /// Removes what is left of it on the local disk.
    RecheckLocal => "recheck.local",

    /// Reads the floor objects.
    SweepFloors => "sweep.floors",
    /// Lists the tenant's objects.
    SweepList => "sweep.list",
    /// Reads a superseded name.
    SweepReadEntry => "sweep.read_entry",
    /// Reads when an epoch was superseded.
    SweepReadBase => "sweep.read_base",
    /// Deletes a dead or expired epoch.
    SweepDeleteEpoch => "sweep.delete_epoch",
    /// Deletes a superseded object.
    SweepDelete => "sweep.delete",
    /// Deletes a superseded image of its own.
    TrimDelete => "trim.delete",

    /// Takes a checkpoint of the write-ahead log.
    LedgerCheckpoint => "ledger.checkpoint",

    /// Asks for renewals: before, the request has not left; after, it is answered and nobody was told.
    RenewRow => "renew.row",
    /// Tells each lease what became of it: deadlines move.
    RenewTold => "renew.told",
    /// Reads its own base after a lapse.
    ResumeReadBase => "resume.read_base",
    /// Reads whether its next name is sealed.
    ResumeReadEntry => "resume.read_entry",
    /// Reads the floor objects.
    ResumeFloors => "resume.floors",
}

/// A place between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// It was decided, and nothing of it is done.
    Before(Act),
    /// It has ended, whatever came of it, and nobody has heard of that yet.
    After(Act),
}

impl Point {
    /// Every point, two for each act.
    pub fn all() -> impl Iterator<Item = Self> {
        Act::ALL.iter().flat_map(|act| [Self::Before(*act), Self::After(*act)])
    }

    /// The act that it belongs to.
    #[must_use]
    pub const fn act(self) -> Act {
        match self {
            Self::Before(act) | Self::After(act) => act,
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(act) => write!(f, "{act}.before"),
            Self::After(act) => write!(f, "{act}.after"),
        }
    }
}

/// A text that names no point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no point: write an act and a side, as in publish.manifest.before")]
pub struct PointError {
    text: String,
}

impl FromStr for Point {
    type Err = PointError;

    fn from_str(text: &str) -> Result<Self, PointError> {
        Self::all()
            .find(|point| point.to_string() == text)
            .ok_or_else(|| PointError { text: text.chars().take(64).collect() })
    }
}

/// Who is told where a replica stands. Injected, as its clock is.
///
/// The step goes on when the call returns. Calls come from whatever thread performs the step, some of them under the lock of a
/// tenure or of the router: an implementation must not call back into either. For a renewal, which is one step for many
/// leases, there is no key.
pub trait Points: Send + Sync + fmt::Debug {
    /// The replica has come to `point`, in what it does for the tenant `key`.
    fn reached(&self, point: Point, key: Option<&LeaseKey>);
}

impl dyn Points {
    /// `work`, with the points of `act` before and after it. A `work` that is dropped has no point after it.
    pub async fn around<T>(&self, act: Act, key: Option<&LeaseKey>, work: impl Future<Output = T>) -> T {
        self.reached(Point::Before(act), key);
        let outcome = work.await;
        self.reached(Point::After(act), key);
        outcome
    }
}

/// Nobody: the product's.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPoints;

impl Points for NoPoints {
    fn reached(&self, _point: Point, _key: Option<&LeaseKey>) {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_point_is_found_by_its_name() {
        for point in Point::all() {
            assert_eq!(point.to_string().parse(), Ok(point));
        }
        assert_eq!("publish.manifest.before".parse::<Point>().unwrap(), Point::Before(Act::PublishManifest));
        for text in ["", "publish.manifest", "publish.manifest.During", "PUBLISH.manifest.after"] {
            assert!(text.parse::<Point>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_an_operation_and_what_is_done() {
        let names: BTreeSet<_> = Act::ALL.iter().map(|act| act.name()).collect();
        assert_eq!(names.len(), Act::ALL.len(), "two acts have one name");
        for name in names {
            let (operation, done) = name.split_once('.').unwrap();
            let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(plain(operation) && plain(done) && !done.is_empty(), "{name}");
        }
    }
}
