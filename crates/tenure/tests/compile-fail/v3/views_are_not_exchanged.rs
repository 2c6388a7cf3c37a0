//! The views of two runs are not exchanged for one another.

use leasehold_ledger::View;
use leasehold_tenure::Handle;

fn exchange(one: &Handle, other: &Handle) {
    let _ = one.run(|first: &mut View<'_>| {
        let _ = other.run(|second: &mut View<'_>| {
            //@ error[E0521]: borrowed data escapes outside of closure
            std::mem::swap(first, second);
            Ok::<(), ()>(())
        });
        Ok::<(), ()>(())
    });
}

fn main() {}
