//! A replica that is taken away at every step of its work, and whoever serves next.
//!
//! [`matrix`] goes through all points, each with a life of its own ([`stories`] says which one comes to it, [`life`] what is done
//! there and after).

mod life;
mod matrix;
mod process;
mod stage;
mod stories;
