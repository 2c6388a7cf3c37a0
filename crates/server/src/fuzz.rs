//! Where the corpus of what this crate reads lies, and which formats it has. Each is asked beside its reader.

use std::path::Path;

use leasehold_fuzz::assert_reached;

/// The corpus.
pub(crate) fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"))
}

/// A header's text without the white space and the one pair of quotes around it.
pub(crate) fn bare(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches([' ', '\t']);
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
}

#[test]
fn every_file_of_the_corpus_is_asked() {
    let formats = [
        "authorization",
        "caller",
        "configuration",
        "http",
        "idempotency-key",
        "if-match",
        "jwks",
        "jwt",
        "timeout",
        "verdict",
    ];
    assert_reached(corpus(), &formats);
}
