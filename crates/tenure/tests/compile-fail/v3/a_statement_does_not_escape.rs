//! A statement that was prepared through a view does not outlive its run.

use leasehold_ledger::{LedgerError, View};
use leasehold_tenure::Handle;

fn keep(handle: &Handle) {
    let statement = handle.run(|view: &mut View<'_>| {
        let statement = view.prepare("SELECT 1")?;
        //@ error: lifetime may not live long enough
        Ok::<_, LedgerError>(statement)
    });
    drop(statement);
}

fn main() {}
