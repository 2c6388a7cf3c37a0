//! What every suite stands on: a fleet by one of two launchers, a load of clients, and what they were told.

mod clients;
mod compose;
mod fleet;
mod follower;
mod front;
mod launcher;
mod load;
mod namespaces;
mod processes;
mod report;
mod writer;

pub(crate) use clients::{path, tenant, tenants};
pub(crate) use fleet::{Fleet, REPLICAS, TTL};
pub(crate) use launcher::{Cut, End, Settings};
pub(crate) use load::{Load, Plan, now};
pub(crate) use report::Report;
pub(crate) use writer::Kind;
