//! Whatever lies in a store: each object is what its bytes say, or damaged by its name; and each name is one thing.

use std::path::Path;

use leasehold_fuzz::{Format, Read, assert_reached, same_json_by};
use leasehold_snapshot::{
    Layout, Listing, Name, Receipt, SnapshotError,
    format::{Base, Entry, FloorRecord},
};
use leasehold_types::{ErrorCode, TenureId, Timestamp};

use crate::world::{at, epoch, key};

fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"))
}

#[test]
fn every_file_of_the_corpus_is_asked() {
    assert_reached(corpus(), &["base", "floor", "manifest", "name", "receipt"]);
}

/// The same, where a moment and a UUID may be spelled in another way.
fn is_same(input: &[u8], written: &[u8]) -> bool {
    same_json_by(input, written, |one, other| {
        let moment = |text: &str| text.parse::<Timestamp>().ok().map(Timestamp::as_millis);
        let uuid = |text: &str| text.parse::<TenureId>().ok();
        let is_moment = moment(one).is_some() && moment(one) == moment(other);
        is_moment || (uuid(one).is_some() && uuid(one) == uuid(other))
    })
}

/// A refusal names its object, and its kind is one that an operator is told of.
fn said(object: &str, error: &SnapshotError) -> String {
    assert!(matches!(error.code(), ErrorCode::Damaged | ErrorCode::FormatTooNew), "{error}");
    let said = error.to_string();
    assert!(said.starts_with(object), "{said}");
    said
}

#[test]
fn a_manifest_is_what_its_bytes_say_or_damaged_by_its_name() {
    let layout = Layout::new(&key());
    let read = |bytes: &[u8]| -> Read {
        match Entry::decode(&layout, at(7, 9), bytes) {
            Ok(Entry::Published(manifest)) => {
                assert_eq!((manifest.snapshot(), &manifest.key), (at(7, 9), &key()));
                assert!(manifest.objects().all(|object| object.under(layout.tenant()).is_some()));
                Ok(manifest.encode().to_vec())
            }
            Ok(Entry::Sealed(seal)) => Ok(seal.encode().to_vec()),
            Err(error) => Err(said("acme/u/e00000007/snap-000009.json", &error)),
        }
    };
    Format { name: "manifest", read: &read, is_same: &is_same }.hold(corpus());
}

#[test]
fn a_base_is_what_its_bytes_say_or_damaged_by_its_name() {
    let object = Layout::new(&key()).base(epoch(7));
    let read = |bytes: &[u8]| -> Read {
        match Base::decode(&object, bytes) {
            Ok(Base::Pinned(pin)) => Ok(pin.encode().to_vec()),
            Ok(Base::Sealed(seal)) => Ok(seal.encode().to_vec()),
            Err(error) => Err(said("acme/u/e00000007/base.json", &error)),
        }
    };
    Format { name: "base", read: &read, is_same: &is_same }.hold(corpus());
}

#[test]
fn a_receipt_and_a_floor_are_what_their_bytes_say() {
    let read = |bytes: &[u8]| -> Read {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let receipt = Receipt::from_json(text).map_err(|error| cut(&error))?;
        Ok(receipt.to_json().into_bytes())
    };
    Format { name: "receipt", read: &read, is_same: &is_same }.hold(corpus());
    let read = |bytes: &[u8]| -> Read {
        let record: FloorRecord = serde_json::from_slice(bytes).map_err(|error| cut(&error))?;
        Ok(record.encode().to_vec())
    };
    Format { name: "floor", read: &read, is_same: &is_same }.hold(corpus());
}

/// What serde says of a name that it does not know is as long as the name.
fn cut(error: &serde_json::Error) -> String {
    error.to_string().chars().take(1_000).collect()
}

#[test]
fn a_name_is_one_thing_and_has_one_spelling() {
    let layout = Layout::new(&key());
    let read = |bytes: &[u8]| -> Read {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let object = text.parse().map_err(|error| format!("{error}"))?;
        let entry = leasehold_blob::BlobEntry { key: object, len: 1 };
        let facts = Listing::new(&layout, std::slice::from_ref(&entry));
        let floor = layout.highest_floor(std::iter::once(&entry.key)).epoch();
        let name = match (layout.name(&entry.key), floor) {
            (Some(Name::Base(epoch)), None) => layout.base(epoch),
            (Some(Name::Manifest(snapshot)), None) => layout.manifest(snapshot),
            (Some(Name::Image(snapshot, Some(attempt))), None) => layout.image(snapshot, attempt),
            // An image of another build: it is read, counted, and not written here.
            (Some(Name::Image(..)), None) => entry.key.clone(),
            (None, Some(epoch)) => layout.floor(epoch),
            // Of an epoch, and nothing that is known: a trace of that epoch.
            (Some(Name::ForeignIn(epoch)), None) => {
                assert_eq!(facts.highest(), Some(epoch));
                return Err("foreign".to_owned());
            }
            _ => return Err("foreign".to_owned()),
        };
        Ok(name.as_str().as_bytes().to_vec())
    };
    Format { name: "name", read: &read, is_same: &|input, written| input == written }.hold(corpus());
}
