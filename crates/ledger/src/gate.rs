//! What every way into a ledger asks before it does anything.

use std::fmt;

use leasehold_types::Refusal;

/// The guard of a ledger: it says, at each call, whether the tenure may use the file now. The phase is asked before
/// the deadline (design.md section 5). Asked often (at each call, before each commit, after it, and while a statement
/// runs), so an answer costs a clock read and an atomic load and never waits.
pub trait Gate: Send + Sync + fmt::Debug {
    /// `Ok` while calls may use the ledger.
    fn pass(&self) -> Result<(), Refusal>;
}

/// The gate of a file that no lease is on: one that an operator restored or exported.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn pass(&self) -> Result<(), Refusal> {
        Ok(())
    }
}
