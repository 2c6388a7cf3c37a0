//! `leasehold snapshot ...`: the blob store, read without a replica.

mod document;
mod list;
mod perform;
mod restore;
mod store;
mod verify;

pub(crate) use perform::perform;
