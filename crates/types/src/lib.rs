//! Leasehold's vocabulary: what every other crate names and none of them may redefine.
//!
//! Nothing here does I/O or knows a runtime. Ids are parsed once, at the edge, and are valid for ever after: whatever
//! holds a [`LeaseKey`] can become a path, an object key or a row without another check. Time, randomness and ids are
//! handed in through [`Clock`], [`Timer`] and [`Entropy`]; the ambient ones are banned outside this crate.
//! [`Points`] is handed in beside them, for who wants to be where a step begins or ends.

mod api_token;
mod clock;
mod code;
mod derive;
mod entropy;
mod epoch;
mod id;
mod only_object;
mod point;
mod position;
mod refusal;
mod scope;

pub use api_token::{ApiToken, TokenError, TokenHash, TokenId};
pub use clock::{Clock, Moment, SystemClock, Timer, Timestamp, TimestampError};
pub use code::ErrorCode;
pub use derive::{DerivationKey, DerivationKeyError};
pub use entropy::Entropy;
pub use epoch::{Epoch, EpochError, Floor};
pub use id::{AttemptId, IdError, LeaseKey, OrgSlug, ReplicaId, TenantId, TenureId, TokenName};
pub use point::{Act, NoPoints, Point, PointError, Points};
pub use position::{Position, PositionError};
pub use refusal::{FencedReason, Refusal};
pub use scope::{Organizations, OrganizationsError, Scope, ScopeError, Scopes};
