//! Nor is there a conversion, a dereference or a downcast that leads to it.

use std::ops::Deref;

use leasehold_ledger::{Ledger, PreparedStatement, View};

fn dereferenced<T: Deref>() {}
fn borrowed<T: AsRef<rusqlite::Connection>>() {}
fn converted<T: Into<rusqlite::Connection>>() {}

fn main() {
    //@ error[E0277]: View<'static>: Deref` is not satisfied
    dereferenced::<View<'static>>();
    //@ error[E0277]: PreparedStatement<'static>: Deref` is not satisfied
    dereferenced::<PreparedStatement<'static>>();
    //@ error[E0277]: Ledger: Deref` is not satisfied
    dereferenced::<Ledger>();
    //@ error[E0277]: View<'static>: AsRef<Connection>` is not satisfied
    borrowed::<View<'static>>();
    //@ error[E0277]: Ledger: AsRef<Connection>` is not satisfied
    borrowed::<Ledger>();
    //@ error[E0277]: From<View<'static>>` is not satisfied
    converted::<View<'static>>();
    //@ error[E0277]: Ledger>` is not satisfied
    converted::<Ledger>();
}
