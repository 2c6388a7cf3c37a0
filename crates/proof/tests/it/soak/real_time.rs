//! The cloud pair.

use leasehold_proof::soak::{SoakPlan, soak_cloud};

#[tokio::test(flavor = "multi_thread")]
async fn the_cloud_pair_keeps_what_was_acknowledged_on_it() {
    let report = soak_cloud(SoakPlan { steps: 800, ..SoakPlan::new(5) }).await;
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report}");
    for what in ["write acknowledged", "sql executed", "event snapshot_published", "history at the end"] {
        assert!(report.counts.get(what).is_some_and(|count| *count > 0), "no `{what}`: {report}");
    }
}
