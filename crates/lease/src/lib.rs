//! Who holds a tenant.
//!
//! [`LeaseStore`] is the contract; its documentation is what every backend must do and what the conformance suite in the
//! testkit checks. [`TokenStore`] is what the same database keeps of the API tokens. [`SqliteLeaseStore`] is the embedded backend. [`HeldLease`] is a lease as the replica that holds it sees it:
//! a claim, and the moment until which it is provably held. The [`Keeper`] renews all of a replica's leases in one chain.

mod columns;
mod error;
mod held;
mod keeper;
mod postgres;
mod renewal_plan;
mod sqlite;
mod store;
mod timer;
mod times;
mod token_store;

pub use error::{LeaseError, LeaseTimesError};
pub use held::{Acquired, EpochInMotion, HeldLease, HeldRenewal};
pub use keeper::{Keeper, Registration, RenewalOutcome, RenewalSink};
pub use postgres::{
    Migration, PostgresCommits, PostgresInspector, PostgresLeaseStore, PostgresOptions, PostgresPooling,
    PostgresRoundTrip, PostgresSchema, PostgresServer, PostgresTls, TlsMode,
};
pub use sqlite::{SqliteFile, SqliteLeaseStore};
pub use store::{
    Acquisition, Announced, Announcement, Claim, Grant, Holder, LeaseRow, LeaseStore, Owner, Recheck,
    Renewal, ReplicaRow,
};
pub use timer::TokioTimer;
pub use times::{HeldOptions, KeeperOptions};
pub use token_store::{NewToken, TOKENS_MAX, TOKENS_PER_NAME_MAX, TokenAdded, TokenRow, TokenStore};
