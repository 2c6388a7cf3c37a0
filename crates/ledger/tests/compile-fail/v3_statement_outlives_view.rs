//! A prepared statement does not outlive the view that it came from.

use leasehold_ledger::{PreparedStatement, View};

fn longer<'a>(view: View<'a>) -> PreparedStatement<'a> {
    //@ error[E0515]: referencing function parameter `view`
    view.prepare("SELECT 1").unwrap()
}

fn main() {}
