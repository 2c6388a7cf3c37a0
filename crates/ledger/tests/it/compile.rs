//! What the compiler refuses (contract V3 and T1): no way from a view to the connection, no view that outlives its
//! closure or takes another's place, no future out of `run`.

use leasehold_testkit::compile_fail;

#[test]
fn v3_t1_what_would_reach_around_the_gate_does_not_compile() {
    compile_fail::check(env!("CARGO_MANIFEST_DIR"), "tests/compile-fail");
}
