//! A replica on the embedded backends for benches, in a directory that goes with it.

mod replica;

pub use replica::{BenchError, Replica};
