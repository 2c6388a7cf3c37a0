//! Which snapshot: `--at`.

use std::{fmt, str::FromStr};

use leasehold_snapshot::{At, SnapshotNumber};

/// A snapshot as an operator names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The newest one of this number, whatever its epoch.
    Number(SnapshotNumber),
    /// As the store knows it.
    At(At),
}

/// A text that names no snapshot.
#[derive(Debug, thiserror::Error)]
#[error(
    "write latest, <number>, <epoch>.<number>, <epoch>-<seq> or an RFC 3339 time such as 2026-09-21T14:00:00Z"
)]
pub(crate) struct WhichError;

impl FromStr for Which {
    type Err = WhichError;

    fn from_str(text: &str) -> Result<Self, WhichError> {
        if text == "latest" {
            return Ok(Self::At(At::Newest));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().ok().and_then(|number| SnapshotNumber::new(number).ok());
            return number.map(Self::Number).ok_or(WhichError);
        }
        text.parse().map(Self::At).map_err(|_| WhichError)
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::At(at) => at.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_snapshot_is_read() {
        assert_eq!("latest".parse::<Which>().unwrap(), Which::At(At::Newest));
        assert_eq!("newest".parse::<Which>().unwrap(), Which::At(At::Newest));
        assert_eq!("9".parse::<Which>().unwrap(), Which::Number(SnapshotNumber::new(9).unwrap()));
        assert!(matches!("7.9".parse::<Which>().unwrap(), Which::At(At::Snapshot(_))));
        assert!(matches!("7-9".parse::<Which>().unwrap(), Which::At(At::Position(_))));
        assert!(matches!("2026-09-21T14:00:00Z".parse::<Which>().unwrap(), Which::At(At::Time(_))));
        for text in ["", "0", "yesterday", "7.", "-1", "99999999999999999999"] {
            assert!(text.parse::<Which>().is_err(), "{text}");
        }
    }
}
