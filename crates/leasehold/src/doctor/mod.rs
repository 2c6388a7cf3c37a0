//! `leasehold doctor`: looks at what a configuration names before it is trusted.
//!
//! Three steps, apart from each other: [`gather`] asks and measures, each question within its own time, and none of them is
//! left out because another one failed; [`judge`] is pure and makes findings of the facts; [`report`] shows them.

mod check;
mod fact;
mod facts;
mod finding;
mod gather;
mod judge;
mod perform;
mod report;

pub(crate) use perform::perform;
