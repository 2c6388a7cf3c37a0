//! No other view can be put in its place, since there is none to take: a view has no default and no copy.

use std::{mem, sync::Arc};

use leasehold_ledger::{Gate, Ledger, LedgerError, View};

fn taken(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| {
        //@ error[E0277]: View<'_>: Default` is not satisfied
        let own = mem::take(view);
        drop(own);
        Ok::<_, LedgerError>(())
    });
}

fn cloned(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| {
        //@ error[E0599]: no method named `clone`
        let own: View<'_> = view.clone();
        drop(own);
        Ok::<_, LedgerError>(())
    });
}

fn main() {}
