//! Memory for what callers send and are answered: asked for before it is taken, and refused where there is no room (decision 0051).
//!
//! Each body, each result and each answer has a bound of its own, and so has how many there are at a time; their product is more than any
//! machine has. So all of them share one budget: a body is reserved by its length before it is read, or piece by piece; a result as its
//! rows come, before they are committed; an answer until its last byte has gone.

mod budget;
mod counters;
mod layer;
mod share;

pub(crate) use budget::Budget;
pub(crate) use counters::MemoryCounters;
pub(crate) use layer::account;
pub(crate) use share::Share;
