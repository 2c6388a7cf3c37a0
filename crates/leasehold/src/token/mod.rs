//! `leasehold token`: which services are known, kept beside the leases.

mod audit;
mod create;
mod list;
mod perform;
mod revoke;

pub(crate) use perform::perform;
