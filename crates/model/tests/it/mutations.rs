//! Each rule of the protocol, broken on purpose: the search finds it, and says the shortest way.

use leasehold_model::{Mutation, Rule, search};

fn is_found(mutation: Mutation) {
    let outcome = search(mutation.bounds(), 1);
    println!("{mutation}: {outcome}");
    let violation = outcome.violation.unwrap_or_else(|| panic!("{mutation} breaks nothing"));
    assert_eq!(violation.rule, mutation.breaks(), "{mutation}: {violation}");
}

macro_rules! found {
    ($($test:ident: $mutation:ident,)+) => {
        $(#[test]
        fn $test() {
            is_found(Mutation::$mutation);
        })+

        #[test]
        fn every_mutation_has_a_test() {
            let tested = [$(Mutation::$mutation),+];
            assert!(Mutation::ALL.iter().all(|mutation| tested.contains(mutation)));
        }
    };
}

found! {
    no_seal_of_the_predecessors_next_name: NoNameSeal,
    no_seal_of_epochs_without_a_base: NoBaseSeal,
    a_pin_before_the_seals: PinBeforeSeal,
    a_taken_name_that_counts_as_sealed: TakenNameIgnored,
    names_that_are_trusted_unread: NamesTrusted,
    an_advance_of_anybodys_row: AdvanceUnconditional,
    a_number_used_before_the_last_ones_fate_is_known: FateAssumed,
    exists_taken_for_ours_unread: ExistsIsOurs,
    a_publish_without_a_check_after_its_manifest: UncheckedPublish,
    a_floor_object_before_the_row: FloorObjectFirst,
    no_floor_object: NoFloorObject,
    a_receipt_without_reading_younger_bases: YoungerUnread,
    a_rows_floor_without_a_witness: FloorUnwitnessed,
    deletions_before_the_floor_object: DeletedFirst,
    seals_swept_early: SealsSweptEarly,
    a_sweep_before_ones_own_first_manifest: SweptBeforeOwn,
    floors_that_are_not_read_again: FloorsNotReadAgain,
    a_resumption_by_the_row_alone: ResumedByRow,
}

#[test]
fn every_rule_of_the_store_is_broken_by_something() {
    let broken: Vec<_> = Mutation::ALL.into_iter().map(Mutation::breaks).collect();
    // An image of a superseded owner is read only after something else was broken: what a seal should have stopped is lost
    // before it is read.
    let rules = [
        Rule::PublishedWriteLost,
        Rule::EpochShared,
        Rule::ForgottenServed,
        Rule::NotThrough,
        Rule::AcknowledgedUnpublished,
        Rule::OwnerUndone,
        Rule::SupersededResumed,
    ];
    assert!(rules.iter().all(|rule| broken.contains(rule)));
}
