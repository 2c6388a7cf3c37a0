//! What the compiler refuses (contract V3 and T1): no way from a view to the connection, no view that outlives its
//! closure or takes another's place, no future out of `run`.

#[test]
fn v3_t1_what_would_reach_around_the_gate_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile-fail/*.rs");
}
