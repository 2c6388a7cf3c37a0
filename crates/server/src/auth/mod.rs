//! Who may call, and what they reach.
//!
//! A request passes three times. Before it is routed, [`identify`] finds out who sent it ([`Identity`]): by what it shows alone, in memory.
//! Once its route is known, [`authorize`] judges by one table ([`access`]), the path and the [`Caller`]: no store is
//! asked before or for it, so that a refusal tells nothing of what is there (decision 0040). [`audit`] notes what was then done that somebody
//! may want to know of later, on the replica that does it.

mod access;
mod audit;
mod authorize;
mod caller;
mod credential;
mod documented;
mod identify;
mod identity;
mod jwt;
mod knowledge;
mod passed_on;
mod self_path;
mod tokens;

pub(crate) use audit::{audit, audit_creation};
pub(crate) use authorize::authorize;
pub(crate) use caller::{Caller, CallerKind};
pub(crate) use documented::document_callers;
pub(crate) use identify::identify;
pub(crate) use identity::Identity;
pub(crate) use jwt::{SECRET_BYTES_MIN, check_url, keep_keys};
pub(crate) use knowledge::Knowledge;
pub(crate) use passed_on::{CALLER, passed_on};
pub(crate) use tokens::keep_tokens;
