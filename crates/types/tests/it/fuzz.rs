//! Whatever a text is, it is the id, position or token that it spells, or none.

use std::{collections::BTreeSet, fmt::Display, path::Path, str::FromStr};

use leasehold_fuzz::{Format, Read, assert_reached, same_json};
use leasehold_types::{
    ApiToken, AttemptId, DerivationKey, Epoch, Floor, LeaseKey, Organizations, Position, Scopes, TenantId,
    TenureId, Timestamp, TokenId,
};

fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"))
}

const FORMATS: [&str; 11] = [
    "api-token",
    "attempt-id",
    "epoch",
    "floor",
    "lease-key",
    "organizations",
    "position",
    "scopes",
    "tenant-id",
    "tenure-id",
    "timestamp",
];

#[test]
fn every_file_of_the_corpus_is_asked() {
    assert_reached(corpus(), &FORMATS);
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

fn read<T: FromStr<Err: Display> + Display>(bytes: &[u8]) -> Read {
    let read: T = text(bytes)?.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(read.to_string().into_bytes())
}

fn read_json<T: serde::Serialize + serde::de::DeserializeOwned>(bytes: &[u8]) -> Read {
    let read: T = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    serde_json::to_vec(&read).map_err(|error| error.to_string())
}

/// A text that has one spelling.
fn hold<T: FromStr<Err: Display> + Display>(name: &str) {
    Format { name, read: &read::<T>, is_same: &|input, written| input == written }.hold(corpus());
}

#[test]
fn an_id_has_one_spelling() {
    hold::<TenantId>("tenant-id");
    hold::<LeaseKey>("lease-key");
    hold::<AttemptId>("attempt-id");
}

#[test]
fn a_position_has_one_spelling() {
    hold::<Position>("position");
}

#[test]
fn an_epoch_and_a_floor_are_numbers_and_nothing_near_them() {
    Format { name: "epoch", read: &read_json::<Epoch>, is_same: &same_json }.hold(corpus());
    Format { name: "floor", read: &read_json::<Floor>, is_same: &same_json }.hold(corpus());
}

/// A UUID in any of its spellings: with braces, as a URN, in either case, with hyphens or without.
fn bare_uuid(bytes: &[u8]) -> Option<String> {
    let text = text(bytes).ok()?;
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    Some(text.replace('-', "").to_ascii_lowercase())
}

#[test]
fn a_tenure_id_is_the_uuid_that_is_written() {
    let is_same = |input: &[u8], written: &[u8]| bare_uuid(input) == bare_uuid(written);
    Format { name: "tenure-id", read: &read::<TenureId>, is_same: &is_same }.hold(corpus());
}

/// The minute of a time that is told in UTC; `None`: it is told in another way, and another minute is right.
fn minute_of(text: &str) -> Option<&str> {
    let is_plain =
        text.len() >= 20 && text.is_ascii() && text.as_bytes()[4] == b'-' && text.as_bytes()[13] == b':';
    (is_plain && text.ends_with('Z')).then(|| &text[11..16])
}

#[test]
fn a_time_is_the_moment_that_is_written() {
    let is_same = |input: &[u8], written: &[u8]| {
        let (Ok(input), Ok(written)) = (text(input), text(written)) else { return false };
        minute_of(written).is_some()
            || written.starts_with(['-', '+'])
                && minute_of(input).is_none_or(|minute| Some(minute) == minute_of(written))
    };
    Format { name: "timestamp", read: &read::<Timestamp>, is_same: &is_same }.hold(corpus());
}

#[test]
fn a_token_is_itself_and_no_refusal_shows_it() {
    let secret = text(include_bytes!("../corpus/api-token/valid/token")).unwrap();
    let read = |bytes: &[u8]| {
        let text = text(bytes)?;
        let token: ApiToken = text.parse().map_err(|error| format!("{error}"))?;
        let shown = format!("{token:?} {:?}", token.hash());
        assert!(!shown.contains(&token.reveal()[20..]), "{shown}");
        let id: TokenId = token.id().as_str().parse().map_err(|error| format!("{error}"))?;
        assert_eq!(&id, token.id());
        Ok(token.reveal().as_bytes().to_vec())
    };
    let read =
        |bytes: &[u8]| read(bytes).inspect_err(|said: &String| assert!(!said.contains(&secret[20..84])));
    Format { name: "api-token", read: &read, is_same: &|input, written| input == written }.hold(corpus());
}

fn words(bytes: &[u8]) -> BTreeSet<String> {
    text(bytes)
        .unwrap_or_default()
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn rights_are_those_that_are_named() {
    let is_same = |input: &[u8], written: &[u8]| words(input) == words(written);
    Format { name: "scopes", read: &read::<Scopes>, is_same: &is_same }.hold(corpus());
    Format { name: "organizations", read: &read::<Organizations>, is_same: &is_same }.hold(corpus());
}

#[test]
fn a_derivation_key_is_read_whole_or_not_at_all_and_shows_nothing() {
    let valid = "0b".repeat(32);
    assert!(DerivationKey::from_hex(&valid).is_ok());
    for at in 0..valid.len() {
        for other in ["", "0", "g", "\0", "é"] {
            let mut near = valid.clone();
            near.replace_range(at..=at, other);
            match DerivationKey::from_hex(&near) {
                Ok(_) => assert!(near.len() == 64 && near.bytes().all(|byte| byte.is_ascii_hexdigit())),
                Err(error) => assert!(!error.to_string().contains("0b0b0b"), "{error}"),
            }
        }
    }
}
