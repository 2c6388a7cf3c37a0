//! The connection is no field that a caller can name.

use leasehold_ledger::View;

fn reach(view: &View<'_>) {
    //@ error[E0616]: field `session` of struct `View` is private
    let _ = &view.session.connection;
}

fn main() {}
