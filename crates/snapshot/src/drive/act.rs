//! Which act a step is: what a plan asks, in what it is asked for.
//!
//! Every ask of every operation is named here, so that a new one does not compile before somebody has said which act it is,
//! or that its operation never asks it.

use leasehold_types::{Act, Epoch};

use crate::{Layout, Name, plan::Ask};

/// What steps are performed for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// An opening at this epoch.
    Open(Epoch),
    Publish,
    /// A handoff's last publish.
    Handoff,
    Forget,
    Recheck,
    Sweep,
    Trim,
    Resume,
}

impl Operation {
    /// The act that `ask` is; `None`: this operation never asks it.
    pub(super) fn act(self, layout: &Layout, ask: &Ask) -> Option<Act> {
        match self {
            Self::Open(epoch) => open(epoch, layout, ask),
            Self::Publish => publish(ask),
            Self::Handoff => handoff(ask),
            Self::Forget => forget(ask),
            Self::Recheck => recheck(ask),
            Self::Sweep => sweep(layout, ask),
            Self::Trim => trim(ask),
            Self::Resume => resume(layout, ask),
        }
    }
}

fn open(epoch: Epoch, layout: &Layout, ask: &Ask) -> Option<Act> {
    Some(match ask {
        Ask::ReadFloors => Act::OpenFloors,
        Ask::List => Act::OpenList,
        Ask::Get(key) => return by_name(layout.name(key), Act::OpenReadEntry, Act::OpenReadBase),
        Ask::Put { key, .. } => match layout.name(key) {
            // Floors alone lie outside a tenant's prefix.
            None => Act::OpenFloorObject,
            Some(Name::Manifest(_)) => Act::OpenSeal,
            Some(Name::Base(own)) if own == epoch => Act::OpenPin,
            Some(Name::Base(_)) => Act::OpenFence,
            Some(Name::Image(..) | Name::ForeignIn(_) | Name::Foreign) => return None,
        },
        Ask::Fetch(_) => Act::OpenFetch,
        Ask::Advance { .. } => Act::OpenAdvance,
        Ask::Renew(_) => Act::OpenRenew,
        Ask::Upload(_)
        | Ask::ReadRow
        | Ask::Held
        | Ask::RaiseFloor(_)
        | Ask::DeleteEpoch(_)
        | Ask::Delete(_) => return None,
    })
}

const fn publish(ask: &Ask) -> Option<Act> {
    Some(match ask {
        Ask::Upload(_) => Act::PublishUpload,
        Ask::Put { .. } => Act::PublishManifest,
        Ask::Get(_) => Act::PublishReadBack,
        Ask::ReadRow => Act::PublishRow,
        Ask::ReadFloors => Act::PublishFloors,
        Ask::Held => Act::PublishDeadline,
        Ask::List
        | Ask::Fetch(_)
        | Ask::Advance { .. }
        | Ask::Renew(_)
        | Ask::RaiseFloor(_)
        | Ask::DeleteEpoch(_)
        | Ask::Delete(_) => return None,
    })
}

const fn handoff(ask: &Ask) -> Option<Act> {
    Some(match ask {
        Ask::Upload(_) => Act::HandoffUpload,
        Ask::Put { .. } => Act::HandoffManifest,
        Ask::Get(_) => Act::HandoffReadBack,
        Ask::ReadRow => Act::HandoffRow,
        Ask::ReadFloors => Act::HandoffFloors,
        Ask::Held => Act::HandoffDeadline,
        Ask::List
        | Ask::Fetch(_)
        | Ask::Advance { .. }
        | Ask::Renew(_)
        | Ask::RaiseFloor(_)
        | Ask::DeleteEpoch(_)
        | Ask::Delete(_) => return None,
    })
}

const fn forget(ask: &Ask) -> Option<Act> {
    Some(match ask {
        Ask::RaiseFloor(_) => Act::ForgetRaiseFloor,
        Ask::Put { .. } => Act::ForgetFloorObject,
        Ask::List => Act::ForgetList,
        Ask::DeleteEpoch(_) => Act::ForgetDelete,
        Ask::Get(_) => Act::ForgetReadBase,
        Ask::ReadFloors
        | Ask::Upload(_)
        | Ask::Fetch(_)
        | Ask::Advance { .. }
        | Ask::Renew(_)
        | Ask::ReadRow
        | Ask::Held
        | Ask::Delete(_) => return None,
    })
}

const fn recheck(ask: &Ask) -> Option<Act> {
    Some(match ask {
        Ask::Put { .. } => Act::RecheckFloorObject,
        Ask::List => Act::RecheckList,
        Ask::DeleteEpoch(_) => Act::RecheckDelete,
        Ask::ReadFloors
        | Ask::Get(_)
        | Ask::Upload(_)
        | Ask::Fetch(_)
        | Ask::Advance { .. }
        | Ask::Renew(_)
        | Ask::ReadRow
        | Ask::Held
        | Ask::RaiseFloor(_)
        | Ask::Delete(_) => return None,
    })
}

fn sweep(layout: &Layout, ask: &Ask) -> Option<Act> {
    Some(match ask {
        Ask::ReadFloors => Act::SweepFloors,
        Ask::List => Act::SweepList,
        Ask::Get(key) => return by_name(layout.name(key), Act::SweepReadEntry, Act::SweepReadBase),
        Ask::DeleteEpoch(_) => Act::SweepDeleteEpoch,
        Ask::Delete(_) => Act::SweepDelete,
        Ask::Put { .. }
        | Ask::Upload(_)
        | Ask::Fetch(_)
        | Ask::Advance { .. }
        | Ask::Renew(_)
        | Ask::ReadRow
        | Ask::Held
        | Ask::RaiseFloor(_) => return None,
    })
}

const fn trim(ask: &Ask) -> Option<Act> {
    match ask {
        Ask::Delete(_) => Some(Act::TrimDelete),
        Ask::ReadFloors
        | Ask::List
        | Ask::Get(_)
        | Ask::Put { .. }
        | Ask::Upload(_)
        | Ask::Fetch(_)
        | Ask::Advance { .. }
        | Ask::Renew(_)
        | Ask::ReadRow
        | Ask::Held
        | Ask::RaiseFloor(_)
        | Ask::DeleteEpoch(_) => None,
    }
}

fn resume(layout: &Layout, ask: &Ask) -> Option<Act> {
    Some(match ask {
        Ask::Get(key) => return by_name(layout.name(key), Act::ResumeReadEntry, Act::ResumeReadBase),
        Ask::ReadFloors => Act::ResumeFloors,
        Ask::List
        | Ask::Put { .. }
        | Ask::Upload(_)
        | Ask::Fetch(_)
        | Ask::Advance { .. }
        | Ask::Renew(_)
        | Ask::ReadRow
        | Ask::Held
        | Ask::RaiseFloor(_)
        | Ask::DeleteEpoch(_)
        | Ask::Delete(_) => return None,
    })
}

const fn by_name(name: Option<Name>, entry: Act, base: Act) -> Option<Act> {
    match name {
        Some(Name::Manifest(_)) => Some(entry),
        Some(Name::Base(_)) => Some(base),
        Some(Name::Image(..) | Name::ForeignIn(_) | Name::Foreign) | None => None,
    }
}
