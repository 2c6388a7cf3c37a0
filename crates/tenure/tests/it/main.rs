//! The tenure crate as its callers meet it: over a fleet, with faults in between.

mod closing;
mod contract;
mod damage;
mod field_notes;
mod full_disk;
mod housekeeping;
mod lapse;
mod moves;
mod opening;
mod panics;
mod points;
mod real_servers;
mod real_time;
mod receipts;
mod rewound;
mod running;
mod salvage;
mod set_back;
mod unpublished;
mod ways_in;
