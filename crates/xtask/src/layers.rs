//! The layers of the workspace: arrows point down only (design.md section 1).
//!
//! `types <- lease, blob, ledger <- snapshot <- tenure <- server <- leasehold`. A crate knows what lies below it, never its
//! equals: the lease store, the blob store and the ledger do not know one another, so that each can be replaced, tested and
//! reasoned about alone. The test kit sees everything up to the tenure and is seen by tests only. What starts the servers under
//! test sees nothing and is seen by tests and by the runner of the suites; what holds formats to their laws sees nothing and is seen by tests. The proof sees everything, and only the fleet's
//! suites, which nothing sees, see it.

use std::fmt;

use cargo_metadata::{DependencyKind, Metadata};

/// The product's crates, lowest layer first; crates of one layer do not know one another.
const LAYERS: [&[&str]; 6] = [
    &["leasehold-types"],
    &["leasehold-lease", "leasehold-blob", "leasehold-ledger"],
    &["leasehold-snapshot"],
    &["leasehold-tenure"],
    &["leasehold-server"],
    &["leasehold"],
];

/// What the suites share: a dev-dependency of anything, a dependency of nothing.
const TESTKIT: &str = "leasehold-testkit";
/// The test kit knows the layers below this one.
const TESTKIT_BELOW: usize = 4;
/// What starts the servers that the suites need knows no other crate: a dev-dependency of anything.
const SERVICES: &str = "leasehold-services";
/// What holds formats to their laws knows no other crate: a dev-dependency of anything.
const FUZZ: &str = "leasehold-fuzz";
/// The runner of the suites knows that one and no other, so that it builds when they do not.
const XTASK: &str = "xtask";

/// Crates without a runtime and without the network: what they do is done when they return.
const SYNCHRONOUS: [&str; 2] = ["leasehold-types", "leasehold-ledger"];
/// What brings a runtime or the network with it.
const RUNTIMES: [&str; 6] = ["async-trait", "axum", "futures", "reqwest", "tokio", "tokio-util"];

/// The exhaustive check knows the layers below this one, and is known by nothing.
const MODEL: &str = "leasehold-model";
const MODEL_BELOW: usize = 4;

/// The benches know everything and are known by nothing.
const BENCHES: &str = "leasehold-benches";

/// The proof knows everything, the test kit in its programs too, and is known by the fleet's suites alone: nothing of it ships.
const PROOF: &str = "leasehold-proof";
/// The fleet's suites use the product as its clients do, and judge it by the proof's recorder.
const FLEET: &str = "leasehold-fleet";

/// When a dependency is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// By the crate itself, or by its build.
    Product,
    /// By its tests only.
    Tests,
}

/// A crate of the workspace with all that its manifest names.
#[derive(Clone, Debug)]
pub struct Member {
    /// The package's name.
    pub name: String,
    /// What it depends on, of the workspace or not.
    pub dependencies: Vec<(String, Need)>,
}

/// An arrow that does not point down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// A crate that has no place in the layers yet.
    Unplaced {
        /// The crate.
        member: String,
    },
    /// A crate knows one that lies beside or above it.
    Upward {
        /// The crate.
        member: String,
        /// What it knows.
        dependency: String,
    },
    /// What is for tests in something that is shipped.
    Shipped {
        /// The crate.
        member: String,
        /// What it knows.
        dependency: String,
    },
    /// A runtime in a crate that must have none.
    Runtime {
        /// The crate.
        member: String,
        /// The runtime.
        dependency: String,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unplaced { member } => {
                write!(f, "{member} has no place in the layers: give it one in crates/xtask/src/layers.rs")
            }
            Self::Upward { member, dependency } => {
                write!(f, "{member} depends on {dependency}, which does not lie below it")
            }
            Self::Shipped { member, dependency } => {
                write!(f, "{member} depends on {dependency} outside its tests: make it a dev-dependency")
            }
            Self::Runtime { member, dependency } => {
                write!(f, "{member} is synchronous and depends on {dependency}")
            }
        }
    }
}

/// The members of the workspace as cargo describes them.
#[must_use]
pub fn members(metadata: &Metadata) -> Vec<Member> {
    let of = |package: &cargo_metadata::Package| Member {
        name: package.name.to_string(),
        dependencies: package
            .dependencies
            .iter()
            .map(|dependency| {
                let need = match dependency.kind {
                    DependencyKind::Development => Need::Tests,
                    _ => Need::Product,
                };
                (dependency.name.clone(), need)
            })
            .collect(),
    };
    metadata.workspace_packages().into_iter().map(of).collect()
}

/// Every arrow between `members` that does not point down.
#[must_use]
pub fn breaches(members: &[Member]) -> Vec<Breach> {
    members.iter().flat_map(|member| breaches_of(member, members)).collect()
}

fn breaches_of(member: &Member, members: &[Member]) -> Vec<Breach> {
    // What lies below the layer of this number may be known.
    let below = match member.name.as_str() {
        TESTKIT => TESTKIT_BELOW,
        SERVICES | FUZZ | XTASK => 0,
        MODEL => MODEL_BELOW,
        BENCHES | PROOF | FLEET => LAYERS.len(),
        name => match layer_of(name) {
            Some(layer) => layer,
            None => return vec![Breach::Unplaced { member: member.name.clone() }],
        },
    };
    let judge = |(dependency, need): &(String, Need)| {
        let of_workspace = members.iter().any(|other| other.name == *dependency);
        let upward = Breach::Upward { member: member.name.clone(), dependency: dependency.clone() };
        let is_for_tests = match dependency.as_str() {
            TESTKIT => ![XTASK, SERVICES].contains(&member.name.as_str()),
            SERVICES => member.name != SERVICES,
            FUZZ => ![FUZZ, SERVICES, XTASK].contains(&member.name.as_str()),
            _ => false,
        };
        if is_for_tests {
            let ships = ![XTASK, PROOF].contains(&member.name.as_str());
            let shipped = Breach::Shipped { member: member.name.clone(), dependency: dependency.clone() };
            (*need == Need::Product && ships).then_some(shipped)
        } else if of_workspace {
            let is_recorder = member.name == FLEET && dependency == PROOF;
            let points_down = is_recorder || layer_of(dependency).is_some_and(|layer| layer < below);
            (!points_down).then_some(upward)
        } else {
            let runtime = SYNCHRONOUS.contains(&member.name.as_str())
                && *need == Need::Product
                && RUNTIMES.contains(&dependency.as_str());
            runtime.then(|| Breach::Runtime { member: member.name.clone(), dependency: dependency.clone() })
        }
    };
    member.dependencies.iter().filter_map(judge).collect()
}

fn layer_of(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(member: &str, dependency: &str, need: Need) -> Vec<Breach> {
        let others = LAYERS
            .concat()
            .into_iter()
            .chain([TESTKIT, SERVICES, FUZZ, XTASK, MODEL, BENCHES, PROOF, FLEET])
            .filter(|name| *name != member);
        let mut members: Vec<Member> =
            others.map(|name| Member { name: name.to_owned(), dependencies: Vec::new() }).collect();
        members.push(Member { name: member.to_owned(), dependencies: vec![(dependency.to_owned(), need)] });
        breaches(&members)
    }

    #[test]
    fn an_arrow_down_is_allowed_over_any_distance() {
        for (member, dependency) in [
            ("leasehold-lease", "leasehold-types"),
            ("leasehold-snapshot", "leasehold-ledger"),
            ("leasehold", "leasehold-types"),
            (TESTKIT, "leasehold-tenure"),
            (MODEL, "leasehold-tenure"),
            (BENCHES, "leasehold"),
            (XTASK, SERVICES),
            (PROOF, "leasehold-server"),
            (PROOF, TESTKIT),
            (FLEET, PROOF),
        ] {
            assert_eq!(workspace(member, dependency, Need::Product), [], "{member} -> {dependency}");
        }
    }

    #[test]
    fn an_arrow_up_or_sideways_is_a_breach_in_tests_too() {
        for (member, dependency) in [
            ("leasehold-types", "leasehold-lease"),
            ("leasehold-lease", "leasehold-blob"),
            ("leasehold-ledger", "leasehold-lease"),
            ("leasehold-snapshot", "leasehold-tenure"),
            ("leasehold-tenure", "xtask"),
            ("leasehold", BENCHES),
            ("leasehold", PROOF),
            ("leasehold", FLEET),
            (PROOF, FLEET),
            ("leasehold-tenure", MODEL),
            (MODEL, "leasehold-server"),
            ("xtask", "leasehold-types"),
            ("xtask", TESTKIT),
            (TESTKIT, "leasehold-server"),
            (SERVICES, "leasehold-types"),
            (SERVICES, TESTKIT),
            (SERVICES, FUZZ),
            (FUZZ, "leasehold-types"),
            (XTASK, FUZZ),
        ] {
            for need in [Need::Product, Need::Tests] {
                let upward = Breach::Upward { member: member.to_owned(), dependency: dependency.to_owned() };
                assert_eq!(workspace(member, dependency, need), [upward]);
            }
        }
    }

    #[test]
    fn the_test_kit_and_the_servers_are_for_tests() {
        for dependency in [TESTKIT, SERVICES, FUZZ] {
            assert_eq!(workspace("leasehold-lease", dependency, Need::Tests), []);
            let shipped =
                Breach::Shipped { member: "leasehold-server".to_owned(), dependency: dependency.to_owned() };
            assert_eq!(workspace("leasehold-server", dependency, Need::Product), [shipped]);
        }
    }

    #[test]
    fn a_synchronous_crate_has_no_runtime() {
        let runtime =
            Breach::Runtime { member: "leasehold-ledger".to_owned(), dependency: "tokio".to_owned() };
        assert_eq!(workspace("leasehold-ledger", "tokio", Need::Product), [runtime]);
        assert_eq!(workspace("leasehold-ledger", "tokio", Need::Tests), []);
        assert_eq!(workspace("leasehold-lease", "tokio", Need::Product), []);
    }

    #[test]
    fn a_new_crate_must_be_given_a_place() {
        let unplaced = Breach::Unplaced { member: "leasehold-novelty".to_owned() };
        assert_eq!(workspace("leasehold-novelty", "leasehold-types", Need::Product), [unplaced]);
    }
}
