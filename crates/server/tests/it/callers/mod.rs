//! Who may call, and what they reach, over a socket and on both pairs.

mod failures;
mod fleet;
pub(crate) mod known;
mod matrix;
mod people;
mod tokens;
