//! A future that a callback returns as its value cannot have the view.

use leasehold_ledger::View;
use leasehold_tenure::Handle;

fn float(handle: &Handle) {
    let _ = handle.run(|view: &mut View<'_>| {
        //@ error: lifetime may not live long enough
        Ok::<_, ()>(async move {
            let _ = view.query("SELECT 1", &[]);
        })
    });
}

fn main() {}
