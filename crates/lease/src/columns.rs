//! What a row's columns hold, as the vocabulary's types: a row that breaks the rules is told by its key, not used.

use leasehold_types::{Epoch, Floor, LeaseKey};

use crate::LeaseError;

pub(crate) fn key_of(text: &str) -> Result<LeaseKey, LeaseError> {
    text.parse().map_err(|error| damaged(text, &error))
}

pub(crate) fn epoch_of(key: &LeaseKey, number: i64) -> Result<Epoch, LeaseError> {
    let number = u64::try_from(number).unwrap_or(0);
    Epoch::new(number).map_err(|error| damaged(key, &error))
}

pub(crate) fn floor_of(key: &LeaseKey, number: i64) -> Result<Floor, LeaseError> {
    let number = u64::try_from(number).map_err(|_| damaged(key, "its floor is negative"))?;
    Floor::new(number).map_err(|error| damaged(key, &error))
}

pub(crate) fn damaged(key: &(impl ToString + ?Sized), detail: &(impl ToString + ?Sized)) -> LeaseError {
    LeaseError::Damaged { key: key.to_string(), detail: detail.to_string() }
}
