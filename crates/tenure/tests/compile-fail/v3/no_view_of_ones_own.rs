//! A view is lent for one run: it is not copied, not made and not taken out of its place.

use leasehold_ledger::View;
use leasehold_tenure::Handle;

fn copies<T: Clone>() {}

fn take(handle: &Handle) {
    let _ = handle.run(|view: &mut View<'_>| {
        //@ error[E0277]: View<'_>: Default` is not satisfied
        let _ = std::mem::take(view);
        Ok::<(), ()>(())
    });
}

fn main() {
    //@ error[E0277]: View<'_>: Clone` is not satisfied
    copies::<View<'_>>();
}
