//! Connections: how many there are, and how long one may take for what it does (decision 0043).
//!
//! A place is taken before a connection is accepted. What it may wait for is watched beneath HTTP, on whatever carries the
//! bytes: the next request, a head that has begun, a peer that takes what is answered.

mod accept;
mod alarm;
mod counters;
mod entrance;
mod handshake;
mod held;
mod places;
mod pulse;
mod watched;

pub(crate) use accept::serve;
pub(crate) use counters::ConnectionCounters;
pub(crate) use entrance::Entrance;
pub(crate) use held::Held;
pub(crate) use places::network_of;
