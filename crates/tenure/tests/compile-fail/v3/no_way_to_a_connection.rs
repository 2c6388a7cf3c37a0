//! Nothing that callers hold derefs to, lends or becomes a connection.

use leasehold_ledger::View;
use leasehold_tenure::{Handle, LedgerRef};
use rusqlite::Connection;

fn derefs(handle: &Handle, ledger: &LedgerRef, view: &View<'_>) {
    //@ error[E0308]: mismatched types
    let _: &Connection = handle;
    //@ error[E0308]: mismatched types
    let _: &Connection = ledger;
    //@ error[E0308]: mismatched types
    let _: &Connection = view;
}

fn lends<T: AsRef<Connection>>() {}

fn becomes<T: Into<Connection>>() {}

fn main() {
    //@ error[E0277]: Handle: AsRef<Connection>` is not satisfied
    lends::<Handle>();
    //@ error[E0277]: LedgerRef: AsRef<Connection>` is not satisfied
    lends::<LedgerRef>();
    //@ error[E0277]: View<'_>: AsRef<Connection>` is not satisfied
    lends::<View<'_>>();
    //@ error[E0277]: Handle>` is not satisfied
    becomes::<Handle>();
    //@ error[E0277]: LedgerRef>` is not satisfied
    becomes::<LedgerRef>();
    //@ error[E0277]: View<'_>>` is not satisfied
    becomes::<View<'_>>();
}
