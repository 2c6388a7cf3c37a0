//! The work is a plain function: a future is no `Result`.

use std::sync::Arc;

use leasehold_ledger::{Gate, Ledger, LedgerError};

fn block(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    //@ error[E0308]: mismatched types
    let _ = ledger.run(gate, |_| async { Ok::<_, LedgerError>(()) });
}

fn closure(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    //@ error[E0271]: to return `Result<_, _>`
    let _ = ledger.run(gate, async |_| Ok::<_, LedgerError>(()));
}

fn main() {}
