//! What the client's XML parser is given: no page and no tag beyond a bound.
//!
//! The parser underneath compares each attribute of a tag with every other one, and keeps each namespace that a tag declares before
//! anybody could refuse it (RUSTSEC-2026-0194, RUSTSEC-2026-0195). Its client is as old as its last release, so the parser stays. A
//! listing is the only XML that is parsed, and it comes from the storage account; a page of it is looked through on its way in, and
//! what no storage service writes is refused before the parser sees it.

use super::transport::TransportError;

/// The longest tag. The root of a listing names an endpoint and a container; no other tag has more than one attribute.
const TAG_LEN_MAX: usize = 4 * 1024;
/// The longest page, in bytes: 5,000 objects with names of 1 KiB and all that the service tells of each are half of it.
const PAGE_LEN_MAX: usize = 32 * 1024 * 1024;

/// Where in a page the last byte stood. The parser's own ways to find the end of a tag are followed, so that both mean the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Text,
    /// After `<`.
    Opened,
    /// In a tag that may have attributes.
    Tag,
    /// In the value of an attribute, until this quote.
    Value(u8),
    /// In a closing tag or a declaration, which end at the next `>` whatever is quoted.
    Plain,
}

/// A look at one page as it comes in.
#[derive(Debug)]
pub(super) struct Markup {
    place: Place,
    tag_len: usize,
    page_len: usize,
}

impl Markup {
    pub(super) fn new() -> Self {
        Self { place: Place::Text, tag_len: 0, page_len: 0 }
    }

    /// Looks through what came next.
    pub(super) fn look(&mut self, chunk: &[u8]) -> Result<(), TransportError> {
        self.page_len = self.page_len.saturating_add(chunk.len());
        if self.page_len > PAGE_LEN_MAX {
            return Err(refused(format!("a page of a listing beyond {PAGE_LEN_MAX} bytes")));
        }
        for &byte in chunk {
            self.tag_len = if self.place == Place::Text { 0 } else { self.tag_len + 1 };
            if self.tag_len > TAG_LEN_MAX {
                return Err(refused(format!("a tag of a listing beyond {TAG_LEN_MAX} bytes")));
            }
            self.place = match (self.place, byte) {
                (Place::Text, b'<') => Place::Opened,
                // Comments, sections and document types end in ways of their own, and no storage service writes one.
                (Place::Opened, b'!') => {
                    return Err(refused("a listing with a comment, a section or a document type".to_owned()));
                }
                (Place::Opened, b'/' | b'?') => Place::Plain,
                (Place::Opened | Place::Tag | Place::Plain, b'>') | (Place::Text, _) => Place::Text,
                (Place::Opened | Place::Tag, b'"' | b'\'') => Place::Value(byte),
                (Place::Opened | Place::Tag, _) => Place::Tag,
                (Place::Value(quote), _) if byte == quote => Place::Tag,
                (Place::Value(_) | Place::Plain, _) => self.place,
            };
        }
        Ok(())
    }
}

fn refused(detail: String) -> TransportError {
    TransportError::Broken(detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults \
                        ServiceEndpoint=\"https://a.blob.core.windows.net/\" ContainerName='c'>";

    /// Byte by byte and at once: what is refused is refused either way.
    fn judge(page: &str) -> Result<(), String> {
        let mut at_once = Markup::new();
        let at_once = at_once.look(page.as_bytes()).map_err(|error| error.to_string());
        let mut in_pieces = Markup::new();
        let pieces = page.as_bytes().chunks(1).try_for_each(|piece| in_pieces.look(piece));
        assert_eq!(at_once, pieces.map_err(|error| error.to_string()));
        at_once
    }

    #[test]
    fn a_listing_as_the_service_writes_it_passes() {
        let name = "it's \"quoted\" &gt; ".repeat(60);
        let blob = format!("<Blob><Name Encoded=\"true\">{name}</Name><Properties /></Blob>");
        assert_eq!(judge(&format!("{HEAD}<Blobs>{}</Blobs></EnumerationResults>", blob.repeat(500))), Ok(()));
    }

    #[test]
    fn a_tag_beyond_the_bound_is_refused_however_its_attributes_are_written() {
        let attributes =
            |value: &str| (0..2_000).map(|n| format!(" a{n}={value}")).collect::<Vec<_>>().concat();
        for value in ["\"\"", "''", "\">\"", "'>'", "\"'>\"", "\"<b>\"", "0"] {
            let page = format!("{HEAD}<Blobs{}></Blobs>", attributes(value));
            assert!(judge(&page).unwrap_err().contains("a tag of a listing beyond"), "{value}");
        }
        // A quote where the parser takes it for nothing is nothing here too.
        for before in ["</a \">", "<?a \"?>", "<a>\"</a>"] {
            let page = format!("{before}<b{}>", attributes("\">\""));
            assert!(judge(&page).unwrap_err().contains("a tag of a listing beyond"), "{before}");
        }
    }

    #[test]
    fn what_has_an_end_of_its_own_is_refused() {
        for page in ["<!-- \" -->", "<![CDATA[<a>]]>", "<!DOCTYPE a>"] {
            assert!(judge(page).unwrap_err().contains("a listing with"), "{page}");
        }
    }

    #[test]
    fn a_page_beyond_the_bound_is_refused() {
        let mut markup = Markup::new();
        let piece = vec![b' '; 1024 * 1024];
        let taken = (0..1_000).take_while(|_| markup.look(&piece).is_ok()).count();
        assert_eq!(taken, PAGE_LEN_MAX / piece.len());
    }

    proptest! {
        /// Whatever is accepted, the client's own parser finds no tag in it that is longer than the bound.
        #[test]
        fn what_passes_has_no_long_tag_for_the_parser(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "<a", ">", "\"", "'", "</a", "<?", "?>", "/>", " b=", "x", "<", "=", "<!", "-->",
            ]), 0..60),
            long in 0_usize..60,
        ) {
            let mut page: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
            page.insert(long.min(page.len()), "y".repeat(TAG_LEN_MAX));
            let page = page.concat();
            if judge(&page).is_ok() {
                prop_assert!(longest_tag_that_the_parser_finds(page.as_bytes()) <= TAG_LEN_MAX);
            }
        }
    }

    /// The longest start tag that the client's own parser finds until it is through or refuses the rest.
    fn longest_tag_that_the_parser_finds(page: &[u8]) -> usize {
        let mut reader = quick_xml::Reader::from_reader(page);
        reader.check_end_names(false);
        let (mut longest, mut buffer) = (0, Vec::new());
        while let Ok(event) = reader.read_event_into(&mut buffer) {
            match event {
                quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag) => {
                    longest = longest.max(tag.len());
                }
                quick_xml::events::Event::Eof => break,
                _ => {}
            }
            buffer.clear();
        }
        longest
    }
}
