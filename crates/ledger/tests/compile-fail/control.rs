//@ compiles
//! What the cases abuse, used as it is meant.

use std::{any::Any, mem, ops::Deref, sync::Arc};

use leasehold_ledger::{Gate, Ledger, LedgerError, NewEvent, PreparedStatement, RunError, View};

fn dereferenced<T: Deref>() {}
fn borrowed<T: AsRef<str>>() {}
fn converted<T: Into<rusqlite::types::Value>>() {}
fn kept<T: Any>(_: T) {}

fn within<'a>(view: &'a View<'_>) -> Result<PreparedStatement<'a>, LedgerError> {
    view.prepare("SELECT 1")
}

fn work(ledger: &Ledger, gate: &Arc<dyn Gate>) -> Result<usize, RunError<LedgerError>> {
    ledger.run(gate, |view: &mut View<'_>| {
        view.append(&[NewEvent::new("kind", "actor")])?;
        let (mut one, mut other) = (within(view)?, view.prepare("SELECT 2")?);
        mem::swap(&mut one, &mut other);
        let rows = one.query(&[])?;
        Ok(rows.rows.len())
    })
}

fn main() {
    dereferenced::<Box<str>>();
    borrowed::<String>();
    converted::<i64>();
    kept(work as fn(&Ledger, &Arc<dyn Gate>) -> _);
}
