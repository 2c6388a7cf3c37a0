//! Where in a tenant's history something stands.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Epoch;

/// A place in a tenant's history: the event numbered `seq`, written in `epoch`.
///
/// A sequence number alone is not a place: the tail that a crash takes away is numbered again by the next epoch. So
/// cursors, stream ids, entity tags and bookmarks carry both (design.md section 3). As text it is `<epoch>-<seq>`, e.g.
/// `7-42`; `seq` 0 stands before the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The epoch in which the event was written.
    pub epoch: Epoch,
    /// The event's number in its ledger, from 1; 0 stands before the first.
    pub seq: u64,
}

/// A text that is no position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a position: a position is <epoch>-<seq>, such as 7-42")]
pub struct PositionError {
    text: String,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.seq)
    }
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        fn number(digits: &str) -> Option<u64> {
            let canonical = digits == "0" || !digits.starts_with('0');
            let plain = canonical && digits.len() <= 19 && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        }
        text.split_once('-')
            .and_then(|(epoch, seq)| Some((Epoch::new(number(epoch)?).ok()?, number(seq)?)))
            .filter(|(_, seq)| i64::try_from(*seq).is_ok())
            .map(|(epoch, seq)| Self { epoch, seq })
            .ok_or_else(|| PositionError { text: text.chars().take(64).collect() })
    }
}

impl Serialize for Position {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_and_position_are_one_to_one(epoch in 1..=i64::MAX.unsigned_abs(), seq in 0..=i64::MAX.unsigned_abs()) {
            let position = Position { epoch: Epoch::new(epoch).unwrap(), seq };
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }

        #[test]
        fn whatever_parses_is_written_the_same(text in "\\PC{0,24}") {
            if let Ok(position) = text.parse::<Position>() {
                prop_assert_eq!(position.to_string(), text);
            }
        }
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in [
            "",
            "-",
            "0-1",
            "1",
            "1-",
            "-1",
            "01-2",
            "1-02",
            "+1-2",
            "1-2-3",
            "9223372036854775808-1",
            "1-9223372036854775808",
        ] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
    }
}
