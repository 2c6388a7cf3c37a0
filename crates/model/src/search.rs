//! One exhaustive search, and what it found.

use std::{fmt, time::Duration};

use leasehold_types::Clock as _;
use stateright::{Checker as _, HasDiscoveries, Model as _};

use crate::{
    bounds::Bounds,
    fleet::{Fleet, FleetBounds},
    life::{Action, Life, State},
    milestone::Milestone,
    rule::Rule,
};

/// A rule that was broken, with the shortest way to it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The way, step by step.
    pub steps: Vec<String>,
}

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How many different states there are.
    pub states: usize,
    /// How many steps lead from one to another.
    pub transitions: usize,
    /// The most steps that a state is away from the first.
    pub depth: usize,
    /// How many different states of the two stores were met.
    pub worlds: usize,
    /// How many different states of a single tenure were met.
    pub tenures: usize,
    /// How long it took.
    pub took: Duration,
    /// What happened somewhere.
    pub milestones: Vec<Milestone>,
    /// The rule that was found broken first.
    pub violation: Option<Violation>,
}

/// Explores everything within `bounds` with so many threads; with one, the way to a violation is the shortest there is.
#[must_use]
pub fn search(bounds: Bounds, threads: usize) -> Outcome {
    let clock = leasehold_types::SystemClock;
    let began = clock.now();
    let checker = Life::new(bounds)
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let life = checker.model();
    let found = checker.discoveries().into_values().next().map(stateright::Path::into_vec);
    let (worlds, tenures) = life.met();
    Outcome {
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        depth: checker.max_depth(),
        worlds,
        tenures,
        took: clock.now().since(began),
        milestones: life.milestones(),
        violation: found.and_then(|path| violation(life, &path)),
    }
}

/// Explores a fleet within `bounds`.
#[must_use]
pub fn search_fleet(bounds: FleetBounds, threads: usize) -> Outcome {
    let clock = leasehold_types::SystemClock;
    let began = clock.now();
    let checker = Fleet::new(bounds)
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let fleet = checker.model();
    let found = checker.discoveries().into_values().next().map(stateright::Path::into_vec);
    let (worlds, tenures) = fleet.met();
    Outcome {
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        depth: checker.max_depth(),
        worlds,
        tenures,
        took: clock.now().since(began),
        milestones: fleet.milestones(),
        violation: found.and_then(|path| {
            let rule = Fleet::broken(&path.last()?.0)?;
            let steps =
                path.iter().filter_map(|(state, action)| action.map(|action| fleet.told(state, action)));
            Some(Violation { rule, steps: steps.collect() })
        }),
    }
}

fn violation(life: &Life, path: &[(State, Option<Action>)]) -> Option<Violation> {
    let rule = Life::broken(&path.last()?.0)?;
    let steps = path.iter().filter_map(|(state, action)| action.map(|action| life.told(state, action)));
    Some(Violation { rule, steps: steps.collect() })
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "broken after {} steps: {}", self.steps.len(), self.rule)?;
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:4}  {step}", number + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, transitions, depth, worlds, tenures, took, violation, .. } = self;
        write!(
            f,
            "{states} states, {transitions} transitions, depth {depth} ({worlds} states of the stores, {tenures} of a tenure), {:.1} s",
            took.as_secs_f64()
        )?;
        match violation {
            Some(violation) => write!(f, "\n{violation}"),
            None => f.write_str(", every rule holds"),
        }
    }
}
