//! A replica's life: built, announced, served, drained.

mod announcer;
mod banner;
mod bind;
mod build;
mod cloud;
mod derivation;
mod going;
mod memory;
mod node;
mod run;

pub use banner::banner;
pub use bind::{Listeners, bind};
pub use build::{Edges, Service, Stores};
pub use run::Shutdown;
