//! An async closure does not compile as a callback.

use leasehold_ledger::View;
use leasehold_tenure::Handle;

fn float(handle: &Handle) {
    //@ error[E0271]: to return `Result<_, _>`
    let _ = handle.run(async |_view: &mut View<'_>| Ok::<(), ()>(()));
}

fn main() {}
