//! A view does not outlive its run.

use leasehold_ledger::View;
use leasehold_tenure::Handle;

fn keep(handle: &Handle) {
    let mut kept = None;
    let _ = handle.run(|view: &mut View<'_>| {
        //@ error[E0521]: borrowed data escapes outside of closure
        kept = Some(view);
        Ok::<(), ()>(())
    });
    drop(kept);
}

fn main() {}
