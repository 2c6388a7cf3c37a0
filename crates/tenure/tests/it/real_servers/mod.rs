//! Real servers that are killed, stopped, slow or busy under tenants that are open.

mod azurite;
mod lost_answers;
mod real_time;
mod stage;
mod throttled;
