//! Who may call, and what they reach.
//!
//! A request passes twice. Before it is routed, [`identify`] finds out who sent it ([`Identity`]) and turns `/v1/self/...` into the
//! tenant of a person's token. Once its route is known, [`authorize`] judges by one table ([`access`]), the path and the [`Caller`] alone: no store is
//! asked before or for it, so that a refusal tells nothing of what is there (decision 0040).

mod access;
mod authorize;
mod caller;
mod identify;
mod identity;
mod passed_on;
mod self_path;

pub(crate) use authorize::authorize;
pub(crate) use caller::{Caller, CallerKind};
pub(crate) use identify::identify;
pub(crate) use identity::Identity;
pub(crate) use passed_on::{CALLER, passed_on};
