//! What needs real time to pass. These run alone.

mod away;
mod killed;
mod slow;
