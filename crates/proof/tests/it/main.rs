//! A replica that is taken away at every step of its work, and whoever serves next.
//!
//! [`matrix`] goes through all points, each with a life of its own ([`stories`] says which one comes to it, [`life`] what is done
//! there and after). [`surrounded`] shows that no call to a store is made outside the points.
//! [`soak`] uses and disturbs a whole fleet by a seed.

mod field_notes;
mod life;
mod matrix;
mod process;
mod soak;
mod stage;
mod stories;
mod surrounded;
mod watched;
