//! The vocabulary as others spell it.

mod fuzz;
