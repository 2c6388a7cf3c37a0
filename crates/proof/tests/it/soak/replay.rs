//! On the embedded pair a seed is a whole run.

use leasehold_proof::soak::{Report, SoakPlan, soak_embedded};

fn soaked(seed: u64) -> Report {
    let plan = SoakPlan { steps: 500, keeps_trace: true, ..SoakPlan::new(seed) };
    soak_embedded(plan).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn the_same_seed_gives_the_same_trace_to_the_last_byte() {
    let (first, second) = (soaked(11), soaked(11));
    let parts = first.trace.iter().zip(&second.trace).position(|(one, other)| one != other);
    if let Some(at) = parts {
        panic!("the traces part at line {at}: `{}` and `{}`", first.trace[at], second.trace[at]);
    }
    assert_eq!(first.trace.len(), second.trace.len());
    assert_eq!((first.digest, first.counts, first.time), (second.digest.clone(), second.counts, second.time));
    assert!(first.lines > 2_000, "a fleet's life leaves more than {} lines", first.lines);
    assert_ne!(soaked(12).digest, second.digest, "another seed is another run");
}
