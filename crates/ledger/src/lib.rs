//! One tenant's SQLite file: events, the guarded view, readers beside the writer, images.
//!
//! Synchronous, and without a runtime: calls block for as long as SQLite takes, so an async program makes them on a
//! thread that may. A [`Ledger`] is one file in one tenure. Every call takes the tenure's [`Gate`], and nothing that a
//! caller gets leads to a connection. What callers' SQL may do is decided while it is compiled, and again from what it
//! did to the schema.
//!
//! The file is a cache: the published copy is the authority, and a crash never recovers from what lies here
//! (contract.md, row L2). So it waits for no disk, and what stands at its path is only ever replaced whole
//! ([`install`]).

mod append;
mod authorizer;
mod connection;
mod control;
mod counters;
mod error;
mod event;
mod execute;
mod files;
mod functions;
mod gate;
mod history;
mod image;
mod json;
mod ledger;
mod limits;
mod lists;
mod live;
mod memory;
mod salvage;
mod schema;
mod session;
mod slot;
mod temporary;
mod value;
mod view;

pub use connection::{limit_memory, memory_limit};
pub use error::{LedgerError, RunError};
pub use event::{Appended, DerivedKey, Event, EventPage, EventQuery, NewEvent};
pub use files::{FileFacts, install, remove_files, verify_file};
pub use gate::{Gate, OpenGate};
pub use image::{CheckpointOutcome, Image};
pub use json::Json;
pub use ledger::{Ledger, Prepared, Sizes, ledger_path};
pub use limits::{LedgerOptions, Limits};
pub use lists::{read_params, read_statements};
pub use memory::{Held, Memory, SharedMemory};
pub use salvage::{SALVAGES_MAX, Salvage, salvage, salvages};
pub use temporary::keep_temporary_files_in;
pub use value::{ExecuteAnswer, Executed, IdempotencyKey, Rows, Statement, Value};
pub use view::{PreparedStatement, View};
