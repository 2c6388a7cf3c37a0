//! No other view can be put in its place: there is none to take, and another run's has another lifetime.

use std::{mem, sync::Arc};

use leasehold_ledger::{Gate, Ledger, LedgerError};

fn swapped(one: &Ledger, other: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = one.run(gate, |first| {
        other
            .run(gate, |second| {
                mem::swap(first, second);
                Ok::<_, LedgerError>(())
            })
            .map_err(leasehold_ledger::RunError::into_ledger)
    });
}

fn taken(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| {
        let view = mem::take(view);
        drop(view);
        Ok::<_, LedgerError>(())
    });
}

fn moved(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| {
        drop(*view);
        Ok::<_, LedgerError>(())
    });
}

fn cloned(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| {
        let own: leasehold_ledger::View<'_> = view.clone();
        drop(own);
        Ok::<_, LedgerError>(())
    });
}

fn main() {}
