//! The deployed backend, over a real Azurite and over servers that say what a test wants.

mod account;
mod conformance;
mod credentials;
mod faults;
mod inspect;
mod script;
mod secrets;
mod settings;
mod shims;
