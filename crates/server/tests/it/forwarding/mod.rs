//! Every replica answers for every tenant.

mod ending;
mod faults;
pub(crate) mod fleet;
mod marks;
mod metering;
mod moving;
mod pausing;
mod placing;
mod ports;
mod routes;
mod streams;
