//! `leasehold tenant ...`: what a running replica does to tenants.

mod export;
mod forget;
mod hold_still;
mod list;
mod move_away;
mod perform;
mod snapshot;
mod status;

pub(crate) use perform::perform;
