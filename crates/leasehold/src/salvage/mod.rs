//! `leasehold salvage ...`: what a crash, a loss or an abandon left on this disk.

mod export;
mod kept;
mod list;
mod perform;

pub(crate) use perform::perform;
