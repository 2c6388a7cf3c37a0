//! A publish's number within its epoch, and a snapshot's name.

use std::{fmt, num::NonZeroU64};

use leasehold_types::Epoch;
use serde::{Deserialize, Serialize};

/// The number of a publish within its epoch: 1 to 2^63 - 1, gapless. Number n + 1 is used only once n is known
/// to be its owner's (protocol.md, "Publish").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct SnapshotNumber(NonZeroU64);

/// A number that no publish can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{number} is not a snapshot's number: they run from 1 to 2^63 - 1")]
pub struct NumberError {
    number: u64,
}

impl SnapshotNumber {
    /// The first publish of an epoch.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// The publish of this number.
    pub fn new(number: u64) -> Result<Self, NumberError> {
        match NonZeroU64::new(number) {
            Some(nonzero) if i64::try_from(number).is_ok() => Ok(Self(nonzero)),
            _ => Err(NumberError { number }),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The next publish's; `None` after the last one.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        Self::new(self.get().checked_add(1)?).ok()
    }
}

impl TryFrom<u64> for SnapshotNumber {
    type Error = NumberError;

    fn try_from(number: u64) -> Result<Self, NumberError> {
        Self::new(number)
    }
}

impl From<SnapshotNumber> for u64 {
    fn from(number: SnapshotNumber) -> Self {
        number.get()
    }
}

impl fmt::Display for SnapshotNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A snapshot: the publish `number` of `epoch`. Shown as `<epoch>.<number>`, e.g. `7.9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct SnapshotRef {
    /// The epoch in which it was published.
    pub epoch: Epoch,
    /// Its number there.
    pub number: SnapshotNumber,
}
leasehold_types::only_as_object!(SnapshotRef + Serialize);

impl fmt::Display for SnapshotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_from_one_to_what_a_row_could_hold() {
        assert!(SnapshotNumber::new(0).is_err() && SnapshotNumber::new(1 << 63).is_err());
        assert_eq!(SnapshotNumber::FIRST.next().map(SnapshotNumber::get), Some(2));
        assert_eq!(SnapshotNumber::new(i64::MAX.unsigned_abs()).unwrap().next(), None);
        assert!(serde_json::from_str::<SnapshotNumber>("0").is_err());
    }
}
