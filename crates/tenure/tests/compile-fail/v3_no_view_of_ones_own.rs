//! A view is lent for one run: it is not copied, not made and not taken out of its place.

use leasehold_ledger::View;
use leasehold_tenure::Handle;

fn copies<T: Clone>() {}

fn take(handle: &Handle) {
    let _ = handle.run(|view: &mut View<'_>| {
        let _ = std::mem::take(view);
        Ok::<(), ()>(())
    });
}

fn main() {
    copies::<View<'_>>();
}
