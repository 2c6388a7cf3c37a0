//! The persisted formats, by their literal bytes: what is in stores today must be read for ever.

use bytes::Bytes;
use leasehold_blob::BlobKey;
use leasehold_lease::Claim;
use leasehold_snapshot::{
    Layout, Receipt, SnapshotError,
    format::{
        Base, Content, Digest, Encoding, Entry, FloorRecord, Format, Manifest, Part, PartKind, Pin, Seal,
    },
};
use leasehold_types::{AttemptId, ErrorCode, Floor, Position, ReplicaId, TenureId, Timestamp};

use crate::world::{at, epoch, key};

const AT: Timestamp = Timestamp::from_millis(1_790_000_000_123);
const TENURE: &str = "00000000-0000-4000-8000-000000000007";

const PIN: &str = r#"{"format":1,"tenure_id":"00000000-0000-4000-8000-000000000007","attempt":"00000000000000ab","snapshot":{"epoch":6,"number":9},"floor":2,"replica":"a","at":"2026-09-21T14:13:20.123Z"}"#;
const EMPTY_PIN: &str = r#"{"format":1,"tenure_id":"00000000-0000-4000-8000-000000000007","attempt":"00000000000000ab","snapshot":null,"floor":0,"replica":"a","at":"2026-09-21T14:13:20.123Z"}"#;
const SEAL: &str = r#"{"format":1,"sealed_by":{"epoch":8,"tenure_id":"00000000-0000-4000-8000-000000000007","replica":"b","at":"2026-09-21T14:13:20.123Z"}}"#;
const MANIFEST: &str = r#"{"format":1,"tenure_id":"00000000-0000-4000-8000-000000000007","attempt":"00000000000000ab","key":"acme/u","epoch":7,"number":9,"closed":true,"parts":[{"key":"acme/u/e00000007/snap-000009-00000000000000ab.db","kind":"image","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","encoding":"zstd"}],"page_size":4096,"pages":12,"position":"7-42","at":"2026-09-21T14:13:20.123Z","replica":"a"}"#;
const INLINE: &str = r#"{"format":1,"tenure_id":"00000000-0000-4000-8000-000000000007","attempt":"00000000000000ab","key":"acme/u","epoch":7,"number":9,"closed":false,"parts":[{"inline":"YWJj","kind":"image","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","encoding":"plain"}],"page_size":65536,"pages":1,"position":"6-0","at":"2026-09-21T14:13:20.123Z","replica":"a"}"#;
const FLOOR: &str = r#"{"format":1,"floor":7,"replica":"a","at":"2026-09-21T14:13:20.123Z"}"#;
const RECEIPT: &str = r#"{"format":1,"key":"acme/u","floor":7,"objects_deleted":3,"bytes_deleted":4096,"verified_at":"2026-09-21T14:13:20.123Z","recheck_at":["2026-09-21T14:13:30.123Z"]}"#;

fn tenure() -> TenureId {
    TENURE.parse().unwrap()
}

fn replica(name: &str) -> ReplicaId {
    name.parse().unwrap()
}

fn pin(snapshot: bool) -> Pin {
    Pin {
        format: Format,
        tenure_id: tenure(),
        attempt: AttemptId::new(0xab),
        snapshot: snapshot.then(|| at(6, 9)),
        floor: Floor::new(if snapshot { 2 } else { 0 }).unwrap(),
        replica: replica("a"),
        at: AT,
    }
}

fn seal() -> Seal {
    Seal::new(&Claim { key: key(), replica: replica("b"), tenure: tenure(), epoch: epoch(8) }, AT)
}

fn manifest() -> Manifest {
    Manifest {
        format: Format,
        tenure_id: tenure(),
        attempt: AttemptId::new(0xab),
        key: key(),
        epoch: epoch(7),
        number: at(7, 9).number,
        closed: true,
        parts: vec![Part {
            content: Content::Object("acme/u/e00000007/snap-000009-00000000000000ab.db".parse().unwrap()),
            kind: PartKind::Image,
            bytes: 3,
            sha256: Digest::of(b"abc"),
            encoding: Encoding::Zstd,
        }],
        page_size: 4096,
        pages: 12,
        position: Position { epoch: epoch(7), seq: 42 },
        at: AT,
        replica: replica("a"),
    }
}

fn inline_manifest() -> Manifest {
    let mut manifest = manifest();
    manifest.closed = false;
    manifest.parts[0].content = Content::Inline(Bytes::from_static(b"abc"));
    manifest.parts[0].encoding = Encoding::Plain;
    (manifest.page_size, manifest.pages) = (65_536, 1);
    manifest.position = Position { epoch: epoch(6), seq: 0 };
    manifest
}

fn base_key() -> BlobKey {
    Layout::new(&key()).base(epoch(7))
}

fn entry(body: &str) -> Result<Entry, SnapshotError> {
    Entry::decode(&Layout::new(&key()), at(7, 9), body.as_bytes())
}

#[test]
fn a_base_is_pinned_bytes() {
    for (body, base) in
        [(PIN, Base::Pinned(pin(true))), (EMPTY_PIN, Base::Pinned(pin(false))), (SEAL, Base::Sealed(seal()))]
    {
        assert_eq!(Base::decode(&base_key(), body.as_bytes()).unwrap(), base);
        let written = match base {
            Base::Pinned(pin) => pin.encode(),
            Base::Sealed(seal) => seal.encode(),
        };
        assert_eq!(written, body);
    }
}

#[test]
fn a_manifest_is_pinned_bytes_and_a_seal_may_lie_in_its_place() {
    for (body, manifest) in [(MANIFEST, manifest()), (INLINE, inline_manifest())] {
        assert_eq!(manifest.encode(), body);
        assert_eq!(entry(body).unwrap(), Entry::Published(Box::new(manifest)));
    }
    assert_eq!(entry(SEAL).unwrap(), Entry::Sealed(seal()));
}

#[test]
fn a_floor_and_a_receipt_are_pinned_bytes() {
    let floor = Floor::new(7).unwrap();
    let record = FloorRecord { format: Format, floor, replica: replica("a"), at: AT };
    assert_eq!(record.encode(), FLOOR);
    let receipt = Receipt {
        format: Format,
        key: key(),
        floor,
        objects_deleted: 3,
        bytes_deleted: 4096,
        verified_at: AT,
        recheck_at: vec![AT.plus(std::time::Duration::from_secs(10))],
    };
    assert_eq!(receipt.to_json(), RECEIPT);
    assert_eq!(Receipt::from_json(RECEIPT).unwrap(), receipt);
    assert!(Receipt::from_json(&RECEIPT.replacen('1', "2", 1)).is_err());
}

#[test]
fn a_newer_format_is_refused_by_its_name_whatever_else_it_has() {
    for body in [
        MANIFEST.replacen("\"format\":1", "\"format\":2", 1),
        SEAL.replacen("\"format\":1", "\"format\":2", 1),
        r#"{"format":7,"what":["ever"]}"#.to_owned(),
    ] {
        let error = entry(&body).unwrap_err();
        assert_eq!(error.code(), ErrorCode::FormatTooNew, "{error}");
        assert!(error.to_string().starts_with("acme/u/e00000007/snap-000009.json has format "), "{error}");
        let error = Base::decode(&base_key(), body.as_bytes()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::FormatTooNew, "{error}");
    }
}

#[test]
fn what_is_not_what_its_name_says_is_damaged_by_its_name() {
    let changed = |from: &str, to: &str| {
        let body = MANIFEST.replacen(from, to, 1);
        assert_ne!(body, MANIFEST, "{from}");
        body
    };
    for body in [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        MANIFEST[..MANIFEST.len() / 2].to_owned(),
        PIN.to_owned(),
        changed("\"format\":1", "\"format\":0"),
        changed("\"format\":1", "\"format\":-1"),
        changed("\"epoch\":7", "\"epoch\":8"),
        changed("\"number\":9", "\"number\":10"),
        changed("acme/u\"", "acme/v\""),
        changed("acme/u/e00000007/", "acme/v/e00000007/"),
        changed("acme/u/e00000007/", "acme/u/../v/"),
        changed("\"image\"", "\"increment\""),
        changed("\"zstd\"", "\"lz4\""),
        changed("ba7816bf", "ba7816b"),
        changed("ba7816bf", "BA7816BF"),
        changed("\"page_size\":4096", "\"page_size\":1000"),
        changed("\"pages\":12", "\"pages\":0"),
        changed("\"pages\":12", "\"pages\":18446744073709551615"),
        changed("\"closed\":true", "\"closed\":true,\"more\":1"),
        changed("\"kind\":", "\"inline\":\"YWJj\",\"kind\":"),
        changed("7-42", "7-042"),
        INLINE.replacen("YWJj", "****", 1),
        SEAL.replacen("\"epoch\":8", "\"epoch\":0", 1),
    ] {
        let error = entry(&body).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Damaged, "{body}: {error}");
        assert!(error.to_string().starts_with("acme/u/e00000007/snap-000009.json is damaged: "), "{error}");
    }
    for body in ["", "{}", MANIFEST, &PIN.replacen("\"floor\":2", "\"floor\":-2", 1)] {
        let error = Base::decode(&base_key(), body.as_bytes()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Damaged, "{body}: {error}");
        assert!(error.to_string().starts_with("acme/u/e00000007/base.json is damaged: "), "{error}");
    }
}
