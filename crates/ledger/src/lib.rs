//! One tenant's SQLite file.

mod gate;

pub use gate::{Gate, OpenGate};
