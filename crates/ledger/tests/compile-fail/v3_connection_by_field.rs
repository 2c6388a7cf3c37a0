//! The connection is no field that a caller can name.

use leasehold_ledger::View;

fn reach(view: &View<'_>) {
    let _ = &view.session.connection;
}

fn main() {}
