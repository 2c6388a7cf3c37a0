//@ compiles
//! What the cases abuse, used as it is meant.

use leasehold_ledger::{LedgerError, View};
use leasehold_tenure::{Handle, LedgerRef};

fn copies<T: Clone>() {}

fn lends<T: AsRef<str>>() {}

fn becomes<T: Into<rusqlite::types::Value>>() {}

fn view(handle: &Handle) {
    let mut kept = None;
    let _ = handle.run(|view: &mut View<'_>| {
        let (mut one, mut other) = (view.prepare("SELECT 1")?, view.prepare("SELECT 2")?);
        std::mem::swap(&mut one, &mut other);
        kept = Some(one.query(&[])?.rows.len());
        Ok::<_, LedgerError>(())
    });
    drop(kept);
}

fn main() {
    let _ = view as fn(&Handle);
    copies::<LedgerRef>();
    lends::<String>();
    becomes::<i64>();
}
