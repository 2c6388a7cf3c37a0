//! The rows, by their letter.

pub(crate) mod drain;
pub(crate) mod forget;
pub(crate) mod handoff;
pub(crate) mod local;
pub(crate) mod observer;
pub(crate) mod paths;
pub(crate) mod renewal;
pub(crate) mod sweep;
pub(crate) mod view;

/// Whether an object is an image: what is put first when a snapshot is published.
pub(crate) fn is_image(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|end| end == "db")
}
