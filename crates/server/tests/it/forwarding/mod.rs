//! Every replica answers for every tenant.

mod faults;
pub(crate) mod fleet;
mod marks;
mod moving;
mod pausing;
mod placing;
mod routes;
mod streams;
