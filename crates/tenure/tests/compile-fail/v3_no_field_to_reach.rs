//! No field of what callers hold can be named.

use leasehold_ledger::View;
use leasehold_tenure::{Handle, LedgerRef};

fn reach(handle: &Handle, ledger: &LedgerRef, view: &View<'_>) {
    let _ = &handle.connection;
    let _ = &ledger.connection;
    let _ = &view.connection;
}

fn main() {}
