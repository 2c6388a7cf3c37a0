//! What is asked by https. It is rustls with ring, and nothing else.

mod client;
mod pem;

pub(crate) use client::client_config;
