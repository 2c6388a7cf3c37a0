//! The view, and what borrows from it, stays inside the closure.

use std::{any::Any, sync::Arc};

use leasehold_ledger::{Gate, Ledger, LedgerError, View};

fn by_answer(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    //@ error: lifetime may not live long enough
    let _ = ledger.run(gate, |view| Ok::<_, LedgerError>(view));
}

fn by_statement(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    //@ error: lifetime may not live long enough
    let _ = ledger.run(gate, |view| view.prepare("SELECT 1"));
}

fn by_capture(ledger: &Ledger, gate: &Arc<dyn Gate>) {
    let mut kept: Option<&View<'_>> = None;
    let _ = ledger.run(gate, |view| {
        //@ error[E0521]: borrowed data escapes outside of closure
        kept = Some(view);
        Ok::<_, LedgerError>(())
    });
}

fn by_downcast(view: View<'_>) -> Box<dyn Any> {
    //@ error: lifetime may not live long enough
    Box::new(view)
}

fn main() {}
