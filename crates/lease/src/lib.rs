//! Who holds a tenant.
//!
//! [`LeaseStore`] is the contract; its documentation is what every backend must do and what the conformance suite in the
//! testkit checks. [`SqliteLeaseStore`] is the embedded backend.

mod error;
mod store;

pub use error::LeaseError;
pub use store::{
    Acquisition, Announced, Announcement, Claim, Grant, Holder, LeaseRow, LeaseStore, Owner, Recheck,
    Renewal, ReplicaRow,
};
