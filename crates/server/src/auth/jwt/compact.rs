//! A token taken apart (RFC 7515, compact serialization). Nothing of it is believed yet.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{algorithm::Algorithm, object::Object};

/// The longest key id that is looked for.
const KEY_ID_BYTES_MAX: usize = 256;

/// A token's parts.
#[derive(Debug)]
pub(super) struct Compact<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    pub(super) claims: Object,
    /// What was signed.
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
}

impl<'a> Compact<'a> {
    /// Of a text; `None`: it is no token of an algorithm that is believed.
    ///
    /// Of the header only the algorithm and the key id count. Where a key lies (`jku`, `x5u`, `jwk`) is the operator's to say, and what a
    /// header calls critical (`crit`) is known here in no case.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        if payload.contains('.') {
            return None;
        }
        let header = Object::read(&URL_SAFE_NO_PAD.decode(header).ok()?)?;
        if header.get("crit").is_some() || header.get("b64").is_some() {
            return None;
        }
        let key_id = header.text("kid").ok()?.map(str::to_owned);
        if key_id.as_ref().is_some_and(|id| id.len() > KEY_ID_BYTES_MAX) {
            return None;
        }
        Some(Self {
            algorithm: Algorithm::of(header.text("alg").ok()??)?,
            key_id,
            claims: Object::read(&URL_SAFE_NO_PAD.decode(payload).ok()?)?,
            signed: signed.as_bytes(),
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }
}
