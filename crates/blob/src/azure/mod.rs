//! The deployed backend: objects as block blobs of one container of an Azure storage account.
//!
//! The client crates underneath are as they are and stay so (`docs/decisions/0020`); what they lack is made good here, and nothing of
//! them is seen outside this folder:
//!
//! - [`transport`]: connections with limits, errors without addresses, and the answer's `Retry-After`.
//! - [`markup`]: what the XML parser is given has no page and no tag beyond a bound.
//! - [`calls`]: every request is repeated a bounded number of times, under limits of an injected timer, outside any log.
//! - [`request`]: every request that is made.
//! - [`headers`]: what the client adds to a request and a strict server refuses.
//! - [`mark`]: whose object it is, and that it is empty, in its metadata: how a create whose answer was lost is known again.
//! - [`upload`], [`download`]: blocks on the way in, ranges on the way out, in bounded memory.
//! - [`federated`], [`managed`], [`token`]: credentials whose tokens follow a file that rotates, or the machine's identity.
//! - [`inspect`]: what a container is set to and keeps, for who has to trust it.
//! - [`options`], [`connection`], [`secret`]: what a caller says, and what no log may show.

mod calls;
mod connection;
mod download;
mod federated;
mod headers;
mod inspect;
mod managed;
mod mark;
mod markup;
mod options;
mod request;
mod secret;
mod store;
mod token;
mod transport;
mod upload;

pub use inspect::{ContainerReach, ContainerSettings, KeptDeleted};
pub use options::{AzureCredential, AzureLimits, AzureOptions};
pub use secret::Secret;
pub use store::AzureStore;
