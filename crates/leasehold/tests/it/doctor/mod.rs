//! `leasehold doctor`, over real servers that are broken one way at a time.

mod configuration;
mod container;
mod embedded;
mod front;
mod patient;
mod postgres;
mod state_root;
mod unreachable;
