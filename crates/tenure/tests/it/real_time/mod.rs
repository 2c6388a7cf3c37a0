//! What needs real time to pass. These run alone, as the contract's rows that name real time do.

mod cadence;
mod outage;
