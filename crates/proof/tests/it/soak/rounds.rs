//! Rounds on the embedded pair: order, durability, uniqueness (field note dotnet/orleans#9855), and nothing left of any of them.

use leasehold_proof::soak::{Report, SoakPlan, soak_embedded};

/// Each of these is one run.
const SEEDS: [u64; 3] = [1, 2, 4];
const STEPS: u64 = 1_000;
/// By how much memory may grow after the second round: the rounds are of one size, and none leaves anything.
const GROWTH_KIB_MAX: u64 = 48 << 10;

#[test]
fn four_replicas_and_two_hundred_tenants_keep_what_they_acknowledged_and_leave_nothing_behind() {
    let mut reports: Vec<Report> = Vec::new();
    for seed in SEEDS {
        let report = soak_embedded(SoakPlan { steps: STEPS, ..SoakPlan::new(seed) })
            .unwrap_or_else(|failure| panic!("{failure}"));
        println!("{report}");
        reports.push(report);
    }
    let total = |what: &str| reports.iter().filter_map(|report| report.counts.get(what)).sum::<u64>();
    for what in [
        "step append",
        "step append a batch",
        "step append by many",
        "step execute",
        "step read",
        "step snapshot",
        "step hand off",
        "step abandon",
        "step forget",
        "step work",
        "step replace",
        "step give up and replace",
        "step clock jumps",
        "step pause",
        "step blobs away",
        "step leases away",
        "step slow puts",
        "step late put",
        "event lapsed",
        "event resumed",
        "event lost",
        "event snapshot_published",
        "event snapshot_failed",
        "event released",
        "event swept",
        "event forgotten",
        "write repeated",
        "sql repeated",
        "history at the end",
        "history forgotten and nothing left",
    ] {
        assert!(total(what) > 0, "no `{what}` in any round: the soak does not do what it says");
    }
    assert!(reports.iter().any(|report| report.lost > 0), "no tail was ever lost: nothing was taken away");
    let resident = |report: &Report| report.footprints.1.resident_kib;
    let grown = resident(&reports[2]).saturating_sub(resident(&reports[1]));
    assert!(grown <= GROWTH_KIB_MAX, "memory has grown by {grown} KiB over a round");
}
