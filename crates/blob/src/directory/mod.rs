//! The embedded backend: objects as files of one directory, which several processes may share.
//!
//! ```text
//! <root>/objects/<key>    the objects, each a plain file of its key's name
//! <root>/incoming/put-*   objects on their way in: written and synced here, then linked to their name
//! ```
//!
//! - `link(2)` is the put-if-absent: the name appears with the whole object behind it, or is somebody else's already.
//! - A writer holds a lock (`flock(2)`) on its incoming file for as long as it lives, so that whoever opens the store sweeps what
//!   dead writers left and nothing else.
//! - Directories come and go with the objects under them. A put whose directory was removed under its hands makes it again.
//! - Every path is walked name by name from an open directory and no symbolic link is followed, so that nothing outside the root is
//!   read, written or deleted, whatever somebody put inside it.
//!
//! The directory must be on one file system that has hard links and `flock`; opening a store tries both.

mod blocking;
mod incoming;
mod store;
mod transfer;
mod tree;

pub use store::DirectoryStore;
