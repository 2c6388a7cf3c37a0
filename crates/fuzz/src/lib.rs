//! Each format that is read from somewhere, held to the same laws (decision 0053).
//!
//! A [`Format`] is a name, a corpus of small files and a function from bytes to what they are written as again, or to the text of a
//! refusal. [`Format::hold`] feeds it what is kept in the corpus, what is made up near that, what is made up from nothing, and what is far
//! too much. The laws, whatever the bytes are:
//!
//! - it returns: no panic, no stack that ends;
//! - what is refused is refused in a text of bounded length;
//! - what is read is what the bytes say: nothing is dropped or guessed, and of a near miss nothing else is made in silence;
//! - what is read and written again is read as the same.
//!
//! An input that breaks one is cut down, kept in the corpus' `found` and asked again in every run from then on. The same inputs are made up in
//! every run, unless the environment asks for more: see [`Plan`].

mod corpus;
mod format;
mod json;
mod near;
mod plan;

pub use corpus::{Corpus, Kept, assert_reached};
pub use format::{Broken, Format, Read};
pub use json::{same_json, same_json_by};
pub use near::{anything, near, too_much};
pub use plan::Plan;
