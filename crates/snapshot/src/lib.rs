//! What counts in the blob store: manifests, bases, seals, floors, and the plans over them.
//!
//! The lease says who should serve; the blob store says what counts. Whatever goes wrong with clocks, pauses or
//! the lease row, no image of a superseded tenure is read and no published write is lost, because both rest on
//! "put if absent" alone: an epoch's next manifest name can be taken once, by its owner's manifest or by its
//! successor's seal (design.md section 4, protocol.md).
//!
//! Two layers:
//!
//! - [`mod@format`] and [`plan`] are pure: no I/O, no clock, no task. A plan says what it asks of the stores
//!   ([`plan::Ask`]), is fed the answers ([`plan::Answer`]) and ends with a result or a typed error. What is
//!   checked by search and by simulation is these plans, and the product runs the same.
//! - [`open`], [`publish`], [`resume`], [`forget`], [`recheck`], [`sweep`] and the readers beside them are
//!   thin: they perform the steps against the two stores, with time limits and bounded retries.

mod drive;
mod error;
pub mod format;
mod layout;
mod listing;
mod number;
mod own;
pub mod plan;

pub use drive::{
    At, AtError, ImageFile, Opened, Published, Restored, Retry, SnapshotContext, SnapshotInfo,
    SnapshotOptions, forget, list, open, publish, recheck, restore_to, resume, sweep, trim,
};
pub use error::SnapshotError;
pub use format::Receipt;
pub use layout::{Layout, Name};
pub use listing::{EpochFacts, ImageFact, Listing};
pub use number::{NumberError, SnapshotNumber, SnapshotRef};
pub use own::{OwnManifest, OwnManifests};
pub use plan::{Cleared, Keep, Resume, Swept, next_recheck, recheck_times};
