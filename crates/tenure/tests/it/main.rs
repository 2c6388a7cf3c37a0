//! The tenure crate as its callers meet it: over a fleet, with faults in between.

mod cadence;
mod contract;
mod damage;
mod full_disk;
mod housekeeping;
mod lapse;
mod opening;
mod receipts;
mod salvage;
