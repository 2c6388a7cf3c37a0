//! Fleets with honest clocks, explored to their end; and each thing that keeps two owners apart, left out.

use leasehold_model::{FleetBounds, FleetConfiguration, FleetMutation, Milestone, search_fleet};

fn holds(name: &str, milestones: &[Milestone]) {
    let configuration = FleetConfiguration::find(name).expect("a configuration");
    let outcome = search_fleet(configuration.bounds, 1);
    println!("{name}: {outcome}");
    assert!(outcome.violation.is_none(), "{name}: {outcome}");
    for milestone in milestones {
        assert!(outcome.milestones.contains(milestone), "{name} never comes to {milestone:?}");
    }
}

#[test]
fn one_tenure_that_is_asked_for_anything_three_times() {
    holds("fleet-one", &[Milestone::Served, Milestone::Acknowledged, Milestone::Forgotten]);
}

#[test]
fn two_tenures_whose_renewals_come_late() {
    holds("fleet-two", &[Milestone::Restored, Milestone::Fenced, Milestone::Resumed]);
}

#[test]
fn handoffs_between_two_tenures_beside_running_work() {
    holds("fleet-handoffs", &[Milestone::Restored, Milestone::Acknowledged]);
}

fn is_found(mutation: FleetMutation) {
    let bounds = FleetBounds { mutation: Some(mutation), ..FleetConfiguration::SUITE[1].bounds };
    let outcome = search_fleet(bounds, 1);
    println!("{mutation:?}: {outcome}");
    let violation = outcome.violation.unwrap_or_else(|| panic!("{mutation:?} breaks nothing"));
    assert_eq!(violation.rule, mutation.breaks(), "{violation}");
}

#[test]
fn a_deadline_that_counts_from_the_answer() {
    is_found(FleetMutation::DeadlineFromAnswer);
}

#[test]
fn a_drain_that_overlooks_what_is_unpublished() {
    is_found(FleetMutation::DirtyOverlooked);
}

#[test]
fn a_gate_that_asks_no_deadline() {
    is_found(FleetMutation::DeadlineUnasked);
}
