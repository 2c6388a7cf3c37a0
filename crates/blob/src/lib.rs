//! Where images live.
//!
//! [`BlobStore`] is the contract; its documentation is what every backend must do and what the conformance suite in the
//! testkit checks. [`DirectoryStore`] is the embedded backend, [`AzureStore`] the deployed one.

mod azure;
mod directory;
mod error;
mod key;
mod store;

pub use azure::{
    AzureCredential, AzureLimits, AzureOptions, AzureStore, ContainerReach, ContainerSettings, KeptDeleted,
    Secret,
};
pub use directory::DirectoryStore;
pub use error::BlobError;
pub use key::{BlobKey, BlobKeyError, BlobPrefix};
pub use store::{BlobEntry, BlobStore, Payload, Put};
