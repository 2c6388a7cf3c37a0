//! What one request holds of the budget.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use axum::{extract::FromRequestParts, http::request::Parts};
use leasehold_ledger::Memory as _;

use super::Budget;
use crate::problem::Problem;

/// Bytes that a request holds whatever it asks: its head, what its connection buffers of it and of its answer, a short body, and the part
/// of an answer for which a ledger does not ask.
const REQUEST_BYTES: u64 = 32 * 1024;
/// What of it is for a body.
const BODY_BYTES: u64 = 8 * 1024;

/// One request's part of the budget, given back when the last of its owners is gone: the request, and its answer's body.
#[derive(Clone, Debug)]
pub(crate) struct Share(Option<Arc<Reserved>>);

#[derive(Debug)]
struct Reserved {
    budget: Arc<Budget>,
    bytes: AtomicU64,
    /// What is left for a body without being asked for.
    free: AtomicU64,
}

impl Share {
    /// The part of a request that begins, or the refusal.
    pub(super) fn begin(budget: &Arc<Budget>) -> Result<Self, Problem> {
        if !budget.enter(REQUEST_BYTES) {
            return Err(short());
        }
        Ok(Self(Some(Arc::new(Reserved {
            budget: Arc::clone(budget),
            bytes: AtomicU64::new(REQUEST_BYTES),
            free: AtomicU64::new(BODY_BYTES),
        }))))
    }

    /// Takes so many bytes more, until the request is answered; or the refusal.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Problem> {
        if self.try_take(bytes) { Ok(()) } else { Err(short()) }
    }

    /// The same; `false`: there is no room.
    pub(crate) fn try_take(&self, bytes: u64) -> bool {
        let Some(reserved) = &self.0 else { return true };
        if reserved.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok() {
            return true;
        }
        let is_taken = reserved.budget.take(bytes);
        if is_taken {
            reserved.bytes.fetch_add(bytes, Relaxed);
        }
        is_taken
    }

    /// One that counts nothing.
    #[cfg(test)]
    pub(crate) const fn uncounted() -> Self {
        Self(None)
    }

    /// That of a request; one that nobody counts has no bound.
    pub(crate) fn of(parts: &Parts) -> Self {
        parts.extensions.get::<Self>().cloned().unwrap_or(Self(None))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes.load(Relaxed));
    }
}

impl<S: Sync> FromRequestParts<S> for Share {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

fn short() -> Problem {
    Problem::overloaded("the memory for requests and their answers is in use on this replica")
}
