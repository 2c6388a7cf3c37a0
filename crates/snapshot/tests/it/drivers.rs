//! The drivers over the embedded stores, with faults in between.

mod forget;
mod inspect;
mod open;
mod publish;
mod restore;
mod stage;
mod sweep;
