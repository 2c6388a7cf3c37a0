//! The service as its callers meet it: over a socket.

#![expect(clippy::unwrap_used, reason = "what a test's own steps meet fails the test")]

mod bad_input;
mod callers;
mod events;
mod fleet;
mod follow;
mod forwarding;
mod full_disk;
mod hostile_requests;
mod lifecycle;
mod memory;
mod metering;
mod operations;
mod outages;
mod panics;
mod raw_requests;
mod readme;
mod served;
mod slow_clients;
mod sql;
mod starting;
mod tls;
mod transfer;
mod watching;
