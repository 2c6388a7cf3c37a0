//! The binary as it is run: real processes on data directories of their own, asked over HTTP and by their own verbs.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get ends it")]

mod bounds;
mod cloud;
mod damage;
mod data;
mod doctor;
mod fleet;
mod full_disk;
mod ground;
mod impostor;
mod interrupt;
mod leaks;
mod leaving;
mod memory;
mod offline;
mod probe;
mod process;
mod readme;
mod starting;
mod terminal;
mod tls;
mod tokens;
mod usage;
mod verbs;
