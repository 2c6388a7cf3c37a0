//@ compiles
//! What the cases abuse, used as it is meant.

use leasehold_ledger::{LedgerError, View};
use leasehold_tenure::{Handle, LedgerRef};

fn run(handle: &Handle) {
    let _ = handle.run(|view: &mut View<'_>| {
        let _ = view.query("SELECT 1", &[])?;
        Ok::<_, LedgerError>(())
    });
}

async fn run_async(handle: &Handle) {
    let _ = handle.run_async(|ledger: LedgerRef| async move { ledger.query("SELECT 1", Vec::new()).await }).await;
}

fn main() {
    let _ = run as fn(&Handle);
    let _ = run_async;
}
