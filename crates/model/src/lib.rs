//! The exhaustive check of the store's protocol (protocol.md) and of a tenure's transitions, over the product's own plans.
//!
//! A [`Life`] is one tenant, a row, a store and a few tenures, each of which can be stalled between any two of its steps for
//! as long as it likes; a checker visits every state that this can come to within [`Bounds`] and holds each against every
//! [`Rule`]. What the tenures do is what the product does: the plans of `leasehold-snapshot`, asked and fed as its drivers
//! ask and feed them. A [`Fleet`] is the same with honest clocks, where the transition function of `leasehold-tenure` says what
//! is begun. What is modelled, what is not, how far, and what each [`Mutation`] breaks is in docs/model.md.
//!
//! | where | what |
//! |---|---|
//! | `world.rs` | the row and the store, every operation one step; what has to be remembered to judge |
//! | `tenure.rs` | one tenure: its plans, where each of them stands |
//! | `life.rs` | what can happen next, and what comes of it |
//! | `fleet.rs`, `member.rs` | tenures with honest clocks: the transition function drives the plans |
//! | `rule.rs`, `mutation.rs` | what must never happen, and how to make it happen |
//! | `bounds.rs`, `configuration.rs`, `search.rs` | how far, under which name, with which result |
//! | `intern.rs`, `tables.rs` | small numbers for large values |
//!
//! Nothing of this ships, and nothing of the product knows of it.

mod bounds;
mod configuration;
mod fleet;
mod intern;
mod life;
mod member;
mod milestone;
mod mutation;
mod rule;
mod search;
mod tables;
mod tenure;
mod world;

pub use bounds::Bounds;
pub use configuration::{Configuration, FleetConfiguration};
pub use fleet::{Fleet, FleetAction, FleetBounds, FleetState, Move};
pub use life::{Action, Doing, Life, State, WorkKind};
pub use milestone::Milestone;
pub use mutation::{FleetMutation, Mutation};
pub use rule::Rule;
pub use search::{Outcome, Violation, search, search_fleet};
