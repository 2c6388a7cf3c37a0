//! What handlers take from a request, each refused with a problem of ours.

use std::{future::Future, time::Duration};

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Path, Request},
    http::{HeaderMap, HeaderValue, header, header::AsHeaderName, request::Parts},
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use hyper::body::Body as _;
use leasehold_types::{ErrorCode, LeaseKey, OrgSlug, TenantId};
use serde::de::DeserializeOwned;

use crate::{
    app::{App, AppState},
    bounds::Counted,
    memory::Share,
    problem::Problem,
};

/// The header by which a write takes effect once.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// As how many a body is held at the most: as it came, as it was read, and as one attempt has it.
const BODY_COPIES: u64 = 3;
/// How long a refused body may still come.
const PASS_OVER_MAX: Duration = Duration::from_secs(1);
/// Bytes of an idempotency key: what the ledger keeps, less the `#<index>` that a batch adds.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 240;

/// The organization of the path.
pub(crate) struct Org(pub(crate) OrgSlug);

impl FromRequestParts<AppState> for Org {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let Path(org): Path<String> = path_of(parts, app).await?;
        org.parse().map(Self).map_err(|error| Problem::about_id(&error))
    }
}

/// The tenant of the path, and its place among the requests at work: held until the handler is done.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) key: LeaseKey,
    pub(crate) place: Counted,
}

impl FromRequestParts<AppState> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let Path((org, tenant)): Path<(String, String)> = path_of(parts, app).await?;
        let org: OrgSlug = org.parse().map_err(|error| Problem::about_id(&error))?;
        let tenant: TenantId = tenant.parse().map_err(|error| Problem::about_id(&error))?;
        let key = LeaseKey::new(org, tenant);
        let place = app.in_flight.enter(&key)?;
        Ok(Self { key, place })
    }
}

async fn path_of<T: DeserializeOwned + Send>(parts: &mut Parts, app: &AppState) -> Result<Path<T>, Problem> {
    Path::from_request_parts(parts, app)
        .await
        .map_err(|rejection| Problem::invalid(format!("the path is not valid: {}", rejection.body_text())))
}

/// The query string; a parameter that is not one is refused.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<AppState> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        axum::extract::Query::from_request_parts(parts, app)
            .await
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|rejection| Problem::invalid(rejection.body_text()))
    }
}

/// The body's bytes, bounded in length and in the time that they may take, of a request that says that they are JSON.
///
/// The content type is asked for because a browser sends JSON to another site only with that site's consent: without it, any page
/// could write to a replica that its reader's machine can reach.
pub(crate) struct JsonBytes(pub(crate) Bytes);

impl FromRequest<AppState> for JsonBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            return Err(Problem::malformed("the body has to be JSON: send `content-type: application/json`"));
        }
        let len_max = app.config.limits.body_bytes_max;
        if content_length(&parts.headers).is_some_and(|len| len > len_max as u64) {
            return Err(too_long(len_max as u64));
        }
        let share = Share::of(&parts);
        let len_known = content_length(&parts.headers);
        if let Some(len) = len_known
            && let Err(problem) = share.take(len * BODY_COPIES)
        {
            pass_over(app, body).await;
            return Err(problem);
        }
        let mut bytes =
            BytesMut::with_capacity(len_known.and_then(|len| usize::try_from(len).ok()).unwrap_or(0));
        let read = read_bounded(body, len_max as u64, |chunk| {
            let reserved = match len_known {
                Some(_) => Ok(()),
                None => share.take(chunk.len() as u64 * BODY_COPIES),
            };
            if reserved.is_ok() {
                bytes.extend_from_slice(&chunk);
            }
            std::future::ready(reserved)
        });
        tokio::select! {
            read = read => read?,
            () = app.timer.sleep(app.config.limits.body_time_max) => {
                return Err(Problem::new(ErrorCode::Timeout, "the body did not arrive in time"));
            }
        };
        Ok(Self(bytes.freeze()))
    }
}

/// Lets a body that is refused pass for a moment: a connection that ends while its client still sends takes the answer with it.
pub(crate) async fn pass_over(app: &App, body: Body) {
    let passing = read_bounded(body, app.config.limits.body_bytes_max as u64, |_| std::future::ready(Ok(())));
    tokio::select! {
        _ = passing => {}
        () = app.timer.sleep(PASS_OVER_MAX) => {}
    }
}

/// A body of JSON of one shape.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Problem> {
        let JsonBytes(bytes) = JsonBytes::from_request(request, app).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| Problem::malformed(error.to_string()))
    }
}

/// The same, or no body at all.
pub(crate) struct OptionalJson<T>(pub(crate) Option<T>);

impl<T: DeserializeOwned> FromRequest<AppState> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Problem> {
        if request.body().is_end_stream() {
            return Ok(Self(None));
        }
        Json::from_request(request, app).await.map(|Json(body)| Self(Some(body)))
    }
}

pub(crate) fn too_long(len_max: u64) -> Problem {
    Problem::too_large(format!("the body is longer than {len_max} bytes"))
}

pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Hands each piece of a body to `take` as it comes, at most `len_max` bytes of it.
pub(crate) async fn read_bounded<F, Fut>(body: Body, len_max: u64, mut take: F) -> Result<u64, Problem>
where
    F: FnMut(Bytes) -> Fut,
    Fut: Future<Output = Result<(), Problem>>,
{
    let mut pieces = body.into_data_stream();
    let mut len = 0_u64;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Problem::malformed("the body ended before it was whole"))?;
        len += piece.len() as u64;
        if len > len_max {
            return Err(too_long(len_max));
        }
        take(piece).await?;
    }
    Ok(len)
}

/// The `Idempotency-Key` of a write; quotes around it, as the header's draft standard has them, do not count.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl FromRequestParts<AppState> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Problem> {
        let refuse = || {
            Problem::invalid(format!(
                "Idempotency-Key is there once, and has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters"
            ))
        };
        match only(&parts.headers, IDEMPOTENCY_KEY).map_err(|_| refuse())? {
            None => Ok(Self(None)),
            Some(value) => idempotency_key_of(value).map(|key| Self(Some(key))).ok_or_else(refuse),
        }
    }
}

fn idempotency_key_of(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let is_key = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&bare.len())
        && bare.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| bare.to_owned())
}

/// A header that is there twice: whoever is in between might go by the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Twice;

/// The only value of a header.
pub(crate) fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&HeaderValue>, Twice> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Twice),
    }
}

/// The epoch of an `If-Match`, quoted or not.
pub(crate) struct IfMatch(pub(crate) Option<leasehold_types::Epoch>);

impl FromRequestParts<AppState> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Problem> {
        let refuse = || Problem::invalid("If-Match is there once, and is the tenant's epoch, such as 7");
        match only(&parts.headers, header::IF_MATCH).map_err(|_| refuse())? {
            None => Ok(Self(None)),
            Some(value) => epoch_of(value).map(|epoch| Self(Some(epoch))).ok_or_else(refuse),
        }
    }
}

fn epoch_of(value: &HeaderValue) -> Option<leasehold_types::Epoch> {
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let is_plain = !bare.starts_with('0') && bare.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| bare.parse().ok()).flatten().and_then(|number| leasehold_types::Epoch::new(number).ok())
}

#[cfg(test)]
mod tests {
    use leasehold_fuzz::{Format, Read};

    use super::*;
    use crate::fuzz::{bare, corpus};

    #[test]
    fn an_expected_epoch_is_the_written_one_whatever_the_bytes() {
        let read = |bytes: &[u8]| -> Read {
            let value = HeaderValue::from_bytes(bytes).map_err(|error| error.to_string())?;
            epoch_of(&value).map(|epoch| epoch.to_string().into_bytes()).ok_or_else(|| "no epoch".to_owned())
        };
        Format { name: "if-match", read: &read, is_same: &|input, written| bare(input) == bare(written) }
            .hold(corpus());
    }

    #[test]
    fn an_idempotency_key_is_the_written_one_whatever_the_bytes() {
        let read = |bytes: &[u8]| -> Read {
            let value = HeaderValue::from_bytes(bytes).map_err(|error| error.to_string())?;
            // Written in quotes, so that a key that is in quotes itself stays what it is.
            let key = idempotency_key_of(&value).ok_or("no key")?;
            Ok(format!("\"{key}\"").into_bytes())
        };
        Format {
            name: "idempotency-key",
            read: &read,
            is_same: &|input, written| bare(input) == bare(written),
        }
        .hold(corpus());
    }

    #[test]
    fn a_header_that_is_there_twice_is_nobodys() {
        let mut headers = HeaderMap::new();
        assert_eq!(only(&headers, IDEMPOTENCY_KEY), Ok(None));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        assert_eq!(only(&headers, IDEMPOTENCY_KEY), Ok(Some(&HeaderValue::from_static("a"))));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        assert_eq!(only(&headers, IDEMPOTENCY_KEY), Err(Twice));
    }
}
