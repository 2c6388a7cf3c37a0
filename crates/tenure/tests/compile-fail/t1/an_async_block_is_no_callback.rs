//! A callback that returns a future does not compile: a future is not a result.

use leasehold_ledger::View;
use leasehold_tenure::Handle;

fn float(handle: &Handle) {
    //@ error[E0308]: mismatched types
    let _ = handle.run(|_view: &mut View<'_>| async { Ok::<(), ()>(()) });
}

fn main() {}
