//! What a step asks for.

use std::time::Duration;

use super::chance::Chance;

/// Which write a caller sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// One that was never sent.
    New,
    /// One that was sent before, chosen by this number.
    Again(u64),
}

/// By which way in a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `append`, which shares commits.
    Append,
    /// `run`, on the caller's thread.
    Run,
    /// A view that is held on its own.
    View,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The replica's clock jumps ahead.
    Jump(Duration),
    /// Its timers, renewals and uploads stand still, and nobody reaches it.
    Pause,
    /// Its blob store is away.
    BlobsAway,
    /// Its lease store is away.
    LeasesAway,
    /// Its puts are slow.
    SlowPuts(Duration),
    /// The answer of its next put is lost.
    LosePut,
    /// The answer of one of its next calls to the lease store is lost.
    LoseLease,
    /// Its next image or manifest is given up by whoever puts it, and lands later.
    LatePut,
    /// Its next delete fails.
    FailDelete,
}

/// One step's action. `usize` is a replica or a tenant by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A batch of writes.
    Append(Vec<Which>, Way),
    /// Several callers at the same time.
    Crowd(usize),
    /// SQL under an idempotency key.
    Execute(Which),
    /// The whole history and all operations.
    Read,
    /// A snapshot.
    Snapshot,
    /// A handoff.
    Handoff,
    /// An abandon.
    Abandon,
    /// A forget.
    Forget,
    /// Work that holds its place for so many steps and then writes.
    Work(u64),
    /// The replica is closed, or with `true` gives everything up, and begins anew.
    Replace(bool),
    /// Something goes wrong for so many steps.
    Trouble(Trouble, u64),
}

const KINDS: [(usize, Kind); 12] = [
    (300, Kind::Append),
    (30, Kind::Crowd),
    (120, Kind::Execute),
    (130, Kind::Read),
    (40, Kind::Snapshot),
    (60, Kind::Handoff),
    (30, Kind::Abandon),
    (35, Kind::Forget),
    (25, Kind::Work),
    (6, Kind::Replace),
    (24, Kind::Fault),
    (30, Kind::Answer),
];

#[derive(Clone, Copy)]
enum Kind {
    Append,
    Crowd,
    Execute,
    Read,
    Snapshot,
    Handoff,
    Abandon,
    Forget,
    Work,
    Replace,
    Fault,
    Answer,
}

/// The next one.
pub(super) fn choose(chance: &mut Chance) -> Action {
    let which = |chance: &mut Chance| {
        if chance.one_in(4) { Which::Again(chance.below(1 << 20) as u64) } else { Which::New }
    };
    match chance.weighted(&KINDS) {
        Kind::Append => {
            let count = if chance.one_in(4) { 2 + chance.below(6) } else { 1 };
            let batch = (0..count).map(|_| which(chance)).collect();
            Action::Append(batch, chance.weighted(&[(6, Way::Append), (2, Way::Run), (2, Way::View)]))
        }
        Kind::Crowd => Action::Crowd(2 + chance.below(8)),
        Kind::Execute => Action::Execute(which(chance)),
        Kind::Read => Action::Read,
        Kind::Snapshot => Action::Snapshot,
        Kind::Handoff => Action::Handoff,
        Kind::Abandon => Action::Abandon,
        Kind::Forget => Action::Forget,
        Kind::Work => Action::Work(1 + chance.below(30) as u64),
        Kind::Replace => Action::Replace(chance.one_in(2)),
        Kind::Fault => {
            let seconds = |chance: &mut Chance, most| Duration::from_secs(1 + chance.below(most) as u64);
            let trouble = match chance.below(5) {
                0 => Trouble::Jump(seconds(chance, 15)),
                1 => Trouble::Pause,
                2 => Trouble::BlobsAway,
                3 => Trouble::LeasesAway,
                _ => Trouble::SlowPuts(seconds(chance, 6)),
            };
            Action::Trouble(trouble, 2 + chance.below(28) as u64)
        }
        Kind::Answer => {
            let all = [Trouble::LosePut, Trouble::LoseLease, Trouble::LatePut, Trouble::FailDelete];
            Action::Trouble(chance.of(&all), 1 + chance.below(40) as u64)
        }
    }
}

impl Action {
    /// Its name, for the trace and the report.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Append(batch, _) if batch.len() > 1 => "append a batch",
            Self::Append(..) => "append",
            Self::Crowd(_) => "append by many",
            Self::Execute(_) => "execute",
            Self::Read => "read",
            Self::Snapshot => "snapshot",
            Self::Handoff => "hand off",
            Self::Abandon => "abandon",
            Self::Forget => "forget",
            Self::Work(_) => "work",
            Self::Replace(false) => "replace",
            Self::Replace(true) => "give up and replace",
            Self::Trouble(trouble, _) => match trouble {
                Trouble::Jump(_) => "clock jumps",
                Trouble::Pause => "pause",
                Trouble::BlobsAway => "blobs away",
                Trouble::LeasesAway => "leases away",
                Trouble::SlowPuts(_) => "slow puts",
                Trouble::LosePut => "lose the answer of a put",
                Trouble::LoseLease => "lose the answer of a lease call",
                Trouble::LatePut => "late put",
                Trouble::FailDelete => "fail a delete",
            },
        }
    }
}
