//! From facts to findings: pure, one file for each thing that is looked at. What is a failure and what a warning is decided in
//! `docs/decisions/0023`.

mod all;
mod container;
mod derivation_key;
mod leases;
mod measures;
mod postgres;
mod probed;
mod process;
#[cfg(test)]
mod samples;
mod state_root;
mod times;
mod tls;

pub(super) use all::{configuration, judge, unloaded, unloaded_configuration};
