//! A caller, as the replica that judged it tells the one that answers.
//!
//! What a client shows is not passed on: the fleet's secret vouches for who it is and what it may do. So a replica that holds a tenant needs
//! neither the client's credential nor the means to judge it (decision 0040).

use std::str::FromStr as _;

use axum::http::{HeaderName, HeaderValue};
use leasehold_types::{Organizations, Scopes};

use super::{Caller, CallerKind, caller::Reach};

/// The header. A client's own is never looked at, and never passed on.
pub(crate) const CALLER: HeaderName = HeaderName::from_static("leasehold-caller");

/// What is sent: kind, name and scopes. Where it reaches was judged for this request already.
pub(crate) fn passed_on(caller: &Caller) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{} {} {}", caller.kind.as_str(), caller.name, caller.scopes)).ok()
}

/// The caller of a request that `replica` sent. One that names none is the replica's own, or of a build before this one.
pub(super) fn received(value: Option<&HeaderValue>, replica: &HeaderValue) -> Option<Caller> {
    let Some(value) = value else { return Some(Caller::replica(replica.to_str().unwrap_or("unnamed"))) };
    let mut words = value.to_str().ok()?.splitn(3, ' ');
    let (kind, name, scopes) = (words.next()?, words.next()?, words.next()?);
    Some(Caller {
        kind: CallerKind::ALL.into_iter().find(|known| known.as_str() == kind)?,
        name: name.into(),
        scopes: if scopes.is_empty() { Scopes::NONE } else { Scopes::from_str(scopes).ok()? },
        reach: Reach::Organizations(Organizations::All),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use leasehold_fuzz::{Format, Read};
    use leasehold_types::Scope;

    use super::*;
    use crate::fuzz::corpus;

    #[test]
    fn a_caller_is_the_written_one_whatever_the_bytes() {
        let read = |bytes: &[u8]| -> Read {
            let value = HeaderValue::from_bytes(bytes).map_err(|error| error.to_string())?;
            let caller = received(Some(&value), &HeaderValue::from_static("dev-1")).ok_or("nobody")?;
            Ok(passed_on(&caller).ok_or("nobody that could be told")?.as_bytes().to_vec())
        };
        // Kind and name to the letter; scopes are a set.
        let parts = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let mut words = text.splitn(3, ' ').map(str::to_owned);
            let (kind, name) = (words.next(), words.next());
            let scopes: BTreeSet<String> =
                words.next().unwrap_or_default().split([' ', ',']).map(str::to_owned).collect();
            (kind, name, scopes.into_iter().filter(|scope| !scope.is_empty()).collect::<Vec<_>>())
        };
        Format { name: "caller", read: &read, is_same: &|input, written| parts(input) == parts(written) }
            .hold(corpus());
    }

    #[test]
    fn a_caller_arrives_as_it_was_judged() {
        let by = HeaderValue::from_static("dev-1");
        let scopes = Scopes::of(&[Scope::Read, Scope::Forget]);
        let sent = Caller::service("crm", scopes, "acme".parse().unwrap());
        let got = received(passed_on(&sent).as_ref(), &by).unwrap();
        assert_eq!((got.kind, &*got.name, got.scopes), (CallerKind::Service, "crm", scopes));
        assert_eq!(received(None, &by), Some(Caller::replica("dev-1")));
        for text in ["", "service", "service crm", "service crm write", "king crm read"] {
            assert_eq!(received(Some(&HeaderValue::from_static(text)), &by), None, "{text}");
        }
    }
}
