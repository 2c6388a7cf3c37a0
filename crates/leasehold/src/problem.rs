//! A replica's refusal, as it sent it.

use leasehold_types::ErrorCode;
use serde::Deserialize;
use serde_json::Value;

/// Problem details (RFC 9457) from a replica.
#[derive(Debug, thiserror::Error)]
#[error("{}", if fields.detail.is_empty() { &fields.title } else { &fields.detail })]
pub(crate) struct Problem {
    fields: Box<Fields>,
    /// All of it, for programs.
    body: Value,
}

#[derive(Debug, Deserialize)]
struct Fields {
    code: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    next: Option<String>,
    #[serde(default)]
    endpoint: Option<String>,
}

impl Problem {
    /// Reads a body; `None`: it is no problem.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let fields = serde_json::from_value(body.clone()).ok()?;
        Some(Self { fields: Box::new(fields), body })
    }

    /// Its code; one that this build does not know counts as a defect.
    pub(crate) fn code(&self) -> ErrorCode {
        let known = ErrorCode::ALL.iter().find(|code| code.as_str() == self.fields.code);
        known.copied().unwrap_or(ErrorCode::Internal)
    }

    /// Its code as it was sent.
    pub(crate) fn code_text(&self) -> &str {
        &self.fields.code
    }

    /// What to do next.
    pub(crate) fn next(&self) -> Option<&str> {
        self.fields.next.as_deref()
    }

    /// Where to ask instead.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        self.fields.endpoint.as_deref()
    }

    /// All of it.
    pub(crate) const fn body(&self) -> &Value {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_known_by_its_code() {
        let problem =
            Problem::read(br#"{"code":"lease_held","detail":"held","endpoint":"http://b:1","x":1}"#);
        let problem = problem.unwrap();
        assert_eq!((problem.code(), problem.endpoint()), (ErrorCode::LeaseHeld, Some("http://b:1")));
        assert_eq!(problem.body()["x"], 1);
        let later = Problem::read(br#"{"code":"not_yet_known"}"#).unwrap();
        assert_eq!((later.code(), later.code_text()), (ErrorCode::Internal, "not_yet_known"));
        for body in [&b"<html>"[..], b"{}", b"[]", b""] {
            assert!(Problem::read(body).is_none());
        }
    }
}
