//! A view stays where the run put it: another run's has another lifetime, and a borrowed one is not given away.

use std::{mem, sync::Arc};

use leasehold_ledger::{Gate, Ledger, LedgerError};

fn swapped(one: &Ledger, other: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = one.run(gate, |first| {
        other
            .run(gate, |second| {
                //@ error[E0521]: borrowed data escapes outside of closure
                mem::swap(first, second);
                Ok::<_, LedgerError>(())
            })
            .map_err(leasehold_ledger::RunError::into_ledger)
    });
}

fn moved(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| {
        //@ error[E0507]: cannot move out of `*view`
        drop(*view);
        Ok::<_, LedgerError>(())
    });
}

fn main() {}
