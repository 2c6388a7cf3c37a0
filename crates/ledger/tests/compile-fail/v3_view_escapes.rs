//! The view, and what borrows from it, stays inside the closure.

use std::sync::Arc;

use leasehold_ledger::{Gate, Ledger, LedgerError, View};

fn by_answer(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| Ok::<_, LedgerError>(view));
}

fn by_statement(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let _ = ledger.run(gate, |view| view.prepare("SELECT 1"));
}

fn by_capture(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let mut kept: Option<&View<'_>> = None;
    let _ = ledger.run(gate, |view| {
        kept = Some(view);
        Ok::<_, LedgerError>(())
    });
}

fn main() {}
