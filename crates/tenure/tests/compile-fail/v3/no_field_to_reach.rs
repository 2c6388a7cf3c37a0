//! No field of what callers hold can be named.

use leasehold_ledger::View;
use leasehold_tenure::{Handle, LedgerRef};

fn reach(handle: &Handle, ledger: &LedgerRef, view: &View<'_>) {
    //@ error[E0609]: no field `connection` on type `&Handle
    let _ = &handle.connection;
    //@ error[E0609]: no field `connection` on type `&LedgerRef
    let _ = &ledger.connection;
    //@ error[E0609]: no field `connection` on type `&View
    let _ = &view.connection;
}

fn main() {}
