//! Nor is there a conversion, a dereference or a downcast that leads to it.

use std::{any::Any, ops::Deref};

use leasehold_ledger::{Ledger, PreparedStatement, View};

fn dereferenced<T: Deref>() {}
fn borrowed<T: AsRef<rusqlite::Connection>>() {}
fn converted<T: Into<rusqlite::Connection>>() {}
fn downcast(view: View<'static>) -> Box<dyn Any> {
    Box::new(view)
}

fn main() {
    dereferenced::<View<'static>>();
    dereferenced::<PreparedStatement<'static>>();
    dereferenced::<Ledger>();
    borrowed::<View<'static>>();
    borrowed::<Ledger>();
    converted::<View<'static>>();
    converted::<Ledger>();
}
