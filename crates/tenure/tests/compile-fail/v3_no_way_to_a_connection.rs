//! Nothing that callers hold derefs to, lends or becomes a connection.

use leasehold_ledger::View;
use leasehold_tenure::{Handle, LedgerRef};
use rusqlite::Connection;

fn derefs(handle: &Handle, ledger: &LedgerRef, view: &View<'_>) {
    let _: &Connection = handle;
    let _: &Connection = ledger;
    let _: &Connection = view;
}

fn lends<T: AsRef<Connection>>() {}

fn becomes<T: Into<Connection>>() {}

fn main() {
    lends::<Handle>();
    lends::<LedgerRef>();
    lends::<View<'_>>();
    becomes::<Handle>();
    becomes::<LedgerRef>();
    becomes::<View<'_>>();
}
