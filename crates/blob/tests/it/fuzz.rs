//! Whatever a text is, it is the object key or the prefix that it spells, or none.

use std::{fmt::Display, path::Path, str::FromStr};

use leasehold_blob::{BlobKey, BlobPrefix};
use leasehold_fuzz::{Format, Read, assert_reached};

fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"))
}

fn read<T: FromStr<Err: Display> + Display>(bytes: &[u8]) -> Read {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let read: T = text.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(read.to_string().into_bytes())
}

#[test]
fn every_file_of_the_corpus_is_asked() {
    assert_reached(corpus(), &["object-key", "prefix"]);
}

#[test]
fn a_key_and_a_prefix_have_one_spelling() {
    let is_same = |input: &[u8], written: &[u8]| {
        let text = std::str::from_utf8(written).unwrap();
        input == written
            && !text.split('/').any(|segment| segment.starts_with('.'))
            && !text.starts_with('/')
            && text.len() <= 512
    };
    Format { name: "object-key", read: &read::<BlobKey>, is_same: &is_same }.hold(corpus());
    Format { name: "prefix", read: &read::<BlobPrefix>, is_same: &is_same }.hold(corpus());
}
