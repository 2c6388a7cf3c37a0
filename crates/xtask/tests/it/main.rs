//! The workspace, held to its own rules.

use xtask::{documents, house, layers, rows, threats, unsafety, workspace::Workspace};

fn workspace() -> Workspace {
    Workspace::find().expect("this test runs inside the workspace")
}

fn shown(breaches: &[impl std::fmt::Display]) -> String {
    breaches.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn dependencies_point_down() {
    let members = layers::members(workspace().metadata());
    assert!(members.len() >= 10, "only {} crates were found", members.len());
    let breaches = layers::breaches(&members);
    assert!(breaches.is_empty(), "{}", shown(&breaches));
}

#[test]
fn sources_keep_the_house_rules() {
    let breaches = house::breaches(&workspace()).expect("the sources can be read");
    assert!(breaches.is_empty(), "{}", shown(&breaches));
}

#[test]
fn documents_link_to_what_is_there() {
    let breaches = documents::breaches(&workspace()).expect("the documents can be read");
    assert!(breaches.is_empty(), "{}", shown(&breaches));
}

#[test]
fn no_source_is_unsafe_and_every_crate_forbids_it() {
    let breaches = unsafety::breaches(&workspace()).expect("the sources can be read");
    assert!(breaches.is_empty(), "{}", shown(&breaches));
}

#[test]
fn every_threat_names_a_test_that_shows_what_stands_against_it() {
    let breaches = threats::breaches(&workspace()).expect("the document can be read");
    assert!(breaches.is_empty(), "{}", shown(&breaches));
}

/// The runner's configuration selects the rows that name real time by their ids; an id that is none would select nothing.
#[test]
fn the_rows_that_run_alone_are_rows() {
    let workspace = workspace();
    let config =
        workspace.text(".config/nextest.toml".as_ref()).expect("it can be read").expect("it is text");
    let groups: Vec<&str> = config
        .lines()
        .filter(|line| line.starts_with("filter = ") && line.contains("contract::"))
        .filter_map(|line| line.split(r"contract::\w+::(").nth(1)?.split(')').next())
        .collect();
    assert_eq!(groups, ["h4|h5|f4|d1|d2|d6|r1", "v3|t1"]);
    for id in groups.iter().flat_map(|group| group.split('|')) {
        assert!(rows::ROWS.contains(&id), "{id} is no row of the contract");
    }
}
