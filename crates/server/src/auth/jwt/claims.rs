//! What has to be so of a token's claims (RFC 7519, section 4.1), once its signature is right.

use std::time::Duration;

use leasehold_types::Timestamp;
use serde_json::Value;

use super::object::Object;

/// The longest subject, in bytes.
const SUBJECT_BYTES_MAX: usize = 1_024;
/// The most audiences that are looked through.
const AUDIENCES_MAX: usize = 64;

/// Whom a token is for and about.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    pub(super) now: Timestamp,
    /// By how much the issuer's clock may differ from ours.
    pub(super) leeway: Duration,
}

/// Who a token's claims are about; the error says why they are believed of nobody.
pub(super) fn subject_of<'a>(claims: &'a Object, expected: &Expected<'_>) -> Result<&'a str, &'static str> {
    if claims.text("iss") != Ok(Some(expected.issuer)) {
        return Err("the token is of another issuer");
    }
    let is_ours = match claims.get("aud") {
        Some(Value::String(one)) => one == expected.audience,
        Some(Value::Array(many)) => {
            many.len() <= AUDIENCES_MAX
                && many.iter().all(Value::is_string)
                && many.iter().any(|one| one == expected.audience)
        }
        _ => false,
    };
    if !is_ours {
        return Err("the token is for another audience");
    }
    let ends_at = seconds(claims, "exp")?.ok_or("the token does not say when it ends")?;
    if expected.now >= ends_at.plus(expected.leeway) {
        return Err("the token has expired");
    }
    if seconds(claims, "nbf")?.is_some_and(|begins_at| expected.now.plus(expected.leeway) < begins_at) {
        return Err("the token is not valid yet");
    }
    match claims.text("sub") {
        Ok(Some(subject)) if (1..=SUBJECT_BYTES_MAX).contains(&subject.len()) => Ok(subject),
        _ => Err("the token has no subject"),
    }
}

/// A time in seconds since 1970, where it is there.
fn seconds(claims: &Object, name: &str) -> Result<Option<Timestamp>, &'static str> {
    /// Beyond any calendar, and exact as a floating-point number.
    const SECONDS_MAX: f64 = 253_402_300_800.0;
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..SECONDS_MAX).contains(seconds));
    let seconds = seconds.ok_or("a time of the token is none")?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounded above, and a fraction of a millisecond is nothing"
    )]
    Ok(Some(Timestamp::from_millis((seconds * 1_000.0) as i64)))
}
