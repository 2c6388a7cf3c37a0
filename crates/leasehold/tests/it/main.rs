//! The binary as it is run: real processes on data directories of their own, asked over HTTP and by their own verbs.

mod damage;
mod data;
mod fleet;
mod full_disk;
mod leaving;
mod offline;
mod process;
mod starting;
mod usage;
mod verbs;
