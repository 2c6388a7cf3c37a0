//! People and agents, by the JWTs of the issuers that are listed (decision 0041).
//!
//! [`compact`] takes a token apart, [`key`] is what a signature is checked by, [`claims`] is what has to be so once it is: none of them knows a
//! clock, a file or a network. [`issuers`] puts them together; [`key_set`] fetches keys and keeps them.

mod algorithm;
mod claims;
mod compact;
mod issuers;
mod key;
mod key_set;
mod object;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use issuers::{Issuers, keep_keys};
#[cfg(test)]
use key::KeyError;
pub(crate) use key::SECRET_BYTES_MIN;
pub(crate) use source::check_url;
