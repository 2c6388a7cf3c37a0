//! What an answer says about where its tenant is.

use axum::http::{HeaderMap, StatusCode, header};
use leasehold_types::{Epoch, ErrorCode};
use serde::Deserialize;

use super::Owner;

/// What a refusal tells whoever could ask elsewhere. Beside a problem of this replica it is an extension of the answer; out of another
/// replica's it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Another replica holds the tenant; nothing was executed.
    Held(Owner),
    /// The tenant is on its way; nothing was executed.
    Moving,
    /// Too much, or out of reach of a store; nothing was executed, and another replica may do better.
    Refused,
    /// Too much, too late or out of reach: what came of an earlier attempt is not known by it.
    Elsewise,
    /// The secret was not accepted.
    PeerRefused,
}

impl Verdict {
    /// The verdict of a refusal with this code.
    pub(crate) fn of(code: ErrorCode, executed_nothing: bool, owner: Option<Owner>) -> Option<Self> {
        match (code, owner) {
            (ErrorCode::LeaseHeld, Some(owner)) if executed_nothing => Some(Self::Held(owner)),
            (ErrorCode::Draining | ErrorCode::Fenced, _) if executed_nothing => Some(Self::Moving),
            (ErrorCode::PeerRefused, _) => Some(Self::PeerRefused),
            (
                ErrorCode::Overloaded | ErrorCode::LeaseStoreUnavailable | ErrorCode::BlobStoreUnavailable,
                _,
            ) if executed_nothing => Some(Self::Refused),
            (
                ErrorCode::LeaseHeld
                | ErrorCode::Draining
                | ErrorCode::Fenced
                | ErrorCode::Paused
                | ErrorCode::Overloaded
                | ErrorCode::Timeout
                | ErrorCode::OwnerUnreachable
                | ErrorCode::LeaseStoreUnavailable
                | ErrorCode::BlobStoreUnavailable,
                _,
            ) => Some(Self::Elsewise),
            _ => None,
        }
    }

    /// The verdict of another replica's problem.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(remote = "Self")]
        struct Fields {
            code: String,
            executed: String,
            epoch: Option<Epoch>,
            owner: Option<String>,
            endpoint: Option<String>,
        }
        leasehold_types::only_as_object!(Fields);
        let fields: Fields = serde_json::from_slice(body).ok()?;
        let code = *ErrorCode::ALL.iter().find(|code| code.as_str() == fields.code)?;
        let owner = fields.owner.zip(fields.endpoint).map(|(replica, endpoint)| Owner {
            replica,
            endpoint,
            epoch: fields.epoch,
        });
        Self::of(code, fields.executed == "no", owner)
    }
}

/// Whether an answer is a problem that may say where its tenant is.
pub(crate) fn may_tell(status: StatusCode, headers: &HeaderMap) -> bool {
    let is_problem = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/problem+json"));
    is_problem && matches!(status.as_u16(), 403 | 409 | 429 | 502 | 503 | 504)
}

#[cfg(test)]
mod tests {
    use leasehold_fuzz::{Format, Read};

    use super::*;
    use crate::fuzz::corpus;

    #[test]
    fn a_verdict_says_no_more_than_its_problem_whatever_the_bytes() {
        let read = |bytes: &[u8]| -> Read {
            let verdict = Verdict::read(bytes).ok_or("no verdict")?;
            let problem: serde_json::Value =
                serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
            if let Verdict::Held(owner) = &verdict {
                assert_eq!(problem["code"], "lease_held");
                assert_eq!(problem["owner"], owner.replica.as_str());
                assert_eq!(problem["endpoint"], owner.endpoint.as_str());
                assert_eq!(problem["epoch"].as_u64(), owner.epoch.map(Epoch::get));
            }
            let is_told_as_not_executed =
                matches!(verdict, Verdict::Held(_) | Verdict::Moving | Verdict::Refused);
            assert!(!is_told_as_not_executed || problem["executed"] == "no", "{problem}");
            Ok(bytes.to_vec())
        };
        Format { name: "verdict", read: &read, is_same: &|input, written| input == written }.hold(corpus());
    }

    #[test]
    fn what_may_have_been_executed_is_never_told_as_moving() {
        assert_eq!(Verdict::of(ErrorCode::Draining, true, None), Some(Verdict::Moving));
        assert_eq!(Verdict::of(ErrorCode::Fenced, false, None), Some(Verdict::Elsewise));
        assert_eq!(Verdict::of(ErrorCode::Overloaded, true, None), Some(Verdict::Refused));
        assert_eq!(Verdict::of(ErrorCode::Overloaded, false, None), Some(Verdict::Elsewise));
        assert_eq!(Verdict::of(ErrorCode::NotEmpty, true, None), None);
        let read = |executed: &str| {
            let body = format!(
                r#"{{"code":"lease_held","executed":"{executed}","epoch":3,"owner":"b","endpoint":"http://b:1","x":[]}}"#
            );
            Verdict::read(body.as_bytes())
        };
        let owner =
            Owner { replica: "b".to_owned(), endpoint: "http://b:1".to_owned(), epoch: Epoch::new(3).ok() };
        assert_eq!(read("no"), Some(Verdict::Held(owner)));
        assert_eq!(read("unknown"), Some(Verdict::Elsewise));
        assert_eq!(Verdict::read(b"{"), None);
    }
}
