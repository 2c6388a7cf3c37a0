//! Each configuration of the suite, explored to its end with every rule held.

use leasehold_model::{Configuration, Milestone, search};

/// Explores the configuration of this name. What has to come up in it came up, so that no rule holds for want of a case.
fn holds(name: &str, milestones: &[Milestone]) {
    let configuration = Configuration::find(name).expect("a configuration");
    let outcome = search(configuration.bounds, 1);
    println!("{name}: {outcome}");
    assert!(outcome.violation.is_none(), "{name}: {outcome}");
    for milestone in
        [Milestone::Served, Milestone::Restored, Milestone::Acknowledged].iter().chain(milestones)
    {
        assert!(outcome.milestones.contains(milestone), "{name} never comes to {milestone:?}");
    }
}

#[test]
fn three_tenures_with_lost_answers_and_late_puts() {
    holds("faults", &[Milestone::Fenced]);
}

#[test]
fn two_publishes_with_open_fates() {
    holds("publishes", &[Milestone::Fenced]);
}

#[test]
fn three_tenures_and_a_row_that_falls_back() {
    holds("rows", &[Milestone::Fenced]);
}

#[test]
fn lapsed_tenures_that_ask_whether_they_may_serve_on() {
    holds("resumes", &[Milestone::Fenced, Milestone::Resumed]);
}

#[test]
fn forgets_between_publishes() {
    holds("forgets", &[Milestone::Forgotten, Milestone::Fenced]);
}

#[test]
fn forgets_that_are_half_done_and_looked_at_again() {
    holds("forgets-lost", &[Milestone::Forgotten]);
}

#[test]
fn a_forget_among_three_tenures() {
    holds("forgets-three", &[Milestone::Forgotten, Milestone::Fenced]);
}

#[test]
fn forgets_and_a_row_that_falls_back_twice() {
    holds("forgets-rows", &[Milestone::Forgotten, Milestone::Resumed]);
}

#[test]
fn sweeps_between_publishes() {
    holds("sweeps", &[]);
}

#[test]
fn sweeps_among_three_tenures() {
    holds("sweeps-three", &[]);
}

#[test]
fn sweeps_beside_forgets_and_a_row_that_falls_back() {
    holds("sweeps-forgets", &[Milestone::Forgotten]);
}

#[test]
fn listings_that_come_in_pages() {
    holds("pages", &[Milestone::Fenced]);
}

#[test]
fn listings_that_come_in_pages_beside_sweeps() {
    holds("pages-sweeps", &[]);
}

#[test]
fn listings_that_come_in_pages_beside_forgets() {
    holds("pages-forgets", &[Milestone::Forgotten]);
}
