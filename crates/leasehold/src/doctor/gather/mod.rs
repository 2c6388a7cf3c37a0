//! The facts: asked for and measured, each within its own time. One that cannot be had leaves the others alone.

mod all;
mod asking;
mod container;
mod derivation_key;
mod embedded;
mod file_system;
mod postgres;
mod probes;
mod state_root;
mod tls;

pub(super) use all::Gathering;
