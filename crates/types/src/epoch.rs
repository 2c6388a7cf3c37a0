//! The fencing token, and the highest one that was forgotten.

use std::{fmt, num::NonZeroU64};

use serde::{Deserialize, Serialize};

/// The fencing token: a whole number from 1 to 2^63 - 1 that rises by at least one with every acquisition of a lease,
/// whoever acquires it, for ever (contract.md, "Words").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Epoch(NonZeroU64);

/// A number that is no epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{number} is not an epoch: epochs run from 1 to {}", Epoch::MAX)]
pub struct EpochError {
    number: u64,
}

impl Epoch {
    /// The first epoch of every tenant.
    pub const FIRST: Self = Self(NonZeroU64::MIN);
    /// The last epoch that a row can hold.
    pub const MAX: Self = match NonZeroU64::new(i64::MAX.unsigned_abs()) {
        Some(number) => Self(number),
        None => Self::FIRST,
    };

    /// The epoch of this number.
    pub fn new(number: u64) -> Result<Self, EpochError> {
        match NonZeroU64::new(number) {
            Some(nonzero) if number <= Self::MAX.get() => Ok(Self(nonzero)),
            _ => Err(EpochError { number }),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The number as SQL stores it.
    #[must_use]
    pub fn as_i64(self) -> i64 {
        // Within range by construction.
        i64::try_from(self.0.get()).unwrap_or(i64::MAX)
    }

    /// The next epoch; `None` after the last one.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        Self::new(self.get().checked_add(1)?).ok()
    }
}

impl TryFrom<u64> for Epoch {
    type Error = EpochError;

    fn try_from(number: u64) -> Result<Self, EpochError> {
        Self::new(number)
    }
}

impl From<Epoch> for u64 {
    fn from(epoch: Epoch) -> Self {
        epoch.get()
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The forget floor: the highest epoch that was forgotten, 0 when none was. What lies in epochs at or below it is dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Floor(u64);

impl Floor {
    /// Nothing was ever forgotten.
    pub const NONE: Self = Self(0);

    /// The floor at this epoch number; 0 means that nothing was forgotten.
    pub fn new(number: u64) -> Result<Self, EpochError> {
        if number <= Epoch::MAX.get() { Ok(Self(number)) } else { Err(EpochError { number }) }
    }

    /// The floor that forgets everything up to and including `epoch`.
    #[must_use]
    pub const fn at(epoch: Epoch) -> Self {
        Self(epoch.get())
    }

    /// The number; 0 when nothing was forgotten.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether `epoch` is dead.
    #[must_use]
    pub const fn covers(self, epoch: Epoch) -> bool {
        epoch.get() <= self.0
    }

    /// The epoch at the floor, where there is one.
    #[must_use]
    pub fn epoch(self) -> Option<Epoch> {
        Epoch::new(self.0).ok()
    }
}

impl TryFrom<u64> for Floor {
    type Error = EpochError;

    fn try_from(number: u64) -> Result<Self, EpochError> {
        Self::new(number)
    }
}

impl From<Floor> for u64 {
    fn from(floor: Floor) -> Self {
        floor.get()
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_what_a_bigint_at_or_above_one_can_hold() {
        assert!(Epoch::new(0).is_err());
        assert_eq!(Epoch::new(1), Ok(Epoch::FIRST));
        assert_eq!(Epoch::MAX.as_i64(), i64::MAX);
        assert!(Epoch::new(1 << 63).is_err());
        assert_eq!(Epoch::MAX.next(), None);
        assert_eq!(Epoch::FIRST.next().map(Epoch::get), Some(2));
        assert!(serde_json::from_str::<Epoch>("0").is_err());
        assert_eq!(serde_json::to_string(&Epoch::FIRST).unwrap(), "1");
    }

    #[test]
    fn a_floor_covers_itself_and_below() {
        let two = Epoch::new(2).unwrap();
        assert!(Floor::at(two).covers(Epoch::FIRST) && Floor::at(two).covers(two));
        assert!(!Floor::at(Epoch::FIRST).covers(two));
        assert!(!Floor::NONE.covers(Epoch::FIRST));
        assert_eq!(Floor::NONE.epoch(), None);
        assert!(serde_json::from_str::<Floor>("9223372036854775808").is_err());
        assert_eq!(serde_json::to_string(&Floor::at(two)).unwrap(), "2");
    }
}
