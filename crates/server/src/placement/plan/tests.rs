//! The plan over fleets that do what it says.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::placement::Slack;

/// A fleet at a moment, with everybody's tenants.
#[derive(Clone, Debug)]
struct World {
    now: u64,
    slack: f64,
    /// When each replica came.
    came_at: Vec<u64>,
    tenants: Vec<Tenant>,
}

#[derive(Clone, Debug)]
struct Tenant {
    holder: usize,
    opened_at: u64,
    is_busy: bool,
    moves: u32,
}

fn name(replica: usize) -> String {
    format!("ledger-{replica}")
}

fn key(tenant: usize) -> LeaseKey {
    format!("acme/u-{tenant}").parse().unwrap()
}

impl World {
    /// `tenants` on the first `old` replicas by turns, and `new` ones that came after that.
    fn of(old: usize, new: usize, tenants: usize, slack: f64) -> Self {
        let came_at = (0..old + new).map(|replica| if replica < old { 0 } else { 200 }).collect();
        let tenants = (0..tenants)
            .map(|tenant| Tenant { holder: tenant % old, opened_at: 100, is_busy: false, moves: 0 })
            .collect();
        Self { now: 300, slack, came_at, tenants }
    }

    fn open(&self, replica: usize) -> u64 {
        self.tenants.iter().filter(|tenant| tenant.holder == replica).count() as u64
    }

    fn seen_by(&self, replica: usize) -> Fleet {
        let members = self.came_at.iter().enumerate().map(|(other, came_at)| Member {
            replica: name(other),
            endpoint: format!("http://{}:7400", name(other)),
            open: self.open(other),
            here_for: Duration::from_secs(self.now - came_at),
            is_this: other == replica,
        });
        Fleet::new(members.collect(), Slack::new(self.slack).unwrap())
    }

    fn own(&self, replica: usize) -> Vec<Own> {
        let held = self.tenants.iter().enumerate().filter(|(_, tenant)| tenant.holder == replica);
        held.map(|(number, tenant)| Own {
            key: key(number),
            open_for: Duration::from_secs(self.now - tenant.opened_at),
            idle_for: Duration::from_secs(number as u64),
            is_busy: tenant.is_busy,
        })
        .collect()
    }

    fn plan(&self, replica: usize, moves_max: usize) -> Vec<Move> {
        plan(&self.seen_by(replica), self.own(replica), moves_max, true)
    }

    fn perform(&mut self, moves: Vec<Move>) {
        self.now += 1;
        for Move { key: moved, to, .. } in moves {
            let number: usize = moved.tenant().as_str().trim_start_matches("u-").parse().unwrap();
            let tenant = &mut self.tenants[number];
            tenant.holder = to.trim_start_matches("ledger-").parse().unwrap();
            (tenant.opened_at, tenant.moves) = (self.now, tenant.moves + 1);
        }
    }

    fn moves(&self) -> u32 {
        self.tenants.iter().map(|tenant| tenant.moves).sum()
    }

    fn is_within_the_bound(&self) -> bool {
        (0..self.came_at.len()).all(|replica| self.open(replica) <= self.seen_by(replica).share_max())
    }

    fn is_at_rest(&self) -> bool {
        (0..self.came_at.len()).all(|replica| self.plan(replica, 9).is_empty())
    }
}

#[test]
fn who_joins_is_given_a_share_and_then_nothing_moves() {
    let mut world = World::of(1, 2, 30, 0.25);
    let mut rounds = 0;
    while !world.is_at_rest() {
        let moves = world.plan(0, 2);
        assert!((1..=2).contains(&moves.len()), "{moves:?}");
        world.perform(moves);
        rounds += 1;
    }
    assert!(world.is_within_the_bound() && rounds >= 9, "{rounds}: {world:?}");
    assert!((1..3).all(|replica| world.open(replica) >= 6), "{world:?}");
    // The same again, with nobody new: what was moved stays.
    world.now += 1_000;
    assert!(world.is_at_rest());
}

#[test]
fn the_idlest_goes_first_and_what_is_in_use_last() {
    let mut world = World::of(1, 1, 12, 0.0);
    world.tenants[11].is_busy = true;
    let first = world.plan(0, 1).pop().unwrap();
    let everything = world.plan(0, 12);
    assert_eq!(everything[0], first);
    let idle = |of: &Move| world.own(0).into_iter().find(|own| own.key == of.key).unwrap();
    for cause in [Cause::Join, Cause::Share] {
        let order: Vec<Own> = everything.iter().filter(|one| one.cause == cause).map(idle).collect();
        let is_sorted = order.windows(2).all(|two| {
            (two[0].is_busy, Reverse(two[0].idle_for)) <= (two[1].is_busy, Reverse(two[1].idle_for))
        });
        assert!(is_sorted, "{order:?}");
    }
    for tenant in &mut world.tenants {
        tenant.is_busy = true;
    }
    assert!(!world.plan(0, 1).is_empty(), "a share that nobody but busy tenants can make");
}

#[test]
fn what_an_operator_moved_stays_where_it_was_put() {
    let mut world = World::of(3, 0, 9, 0.25);
    // All within the bound, whatever each one's place by its hash would be.
    world.tenants[0].holder = 1;
    world.tenants[0].opened_at = 250;
    assert!(world.is_within_the_bound() && world.is_at_rest());
}

#[test]
fn alone_or_leaving_nothing_is_planned() {
    assert!(World::of(1, 0, 30, 0.0).is_at_rest());
    let world = World::of(1, 1, 30, 0.0);
    let mut members = world.seen_by(0).members().to_vec();
    members.retain(|member| !member.is_this);
    let leaving = Fleet::new(members, Slack::new(0.0).unwrap());
    assert!(plan(&leaving, world.own(0), 9, true).is_empty());
}

fn worlds() -> impl Strategy<Value = World> {
    let replicas = proptest::collection::vec(0_u64..300, 1..8);
    let tenants = proptest::collection::vec((0_usize..8, 0_u64..300, any::<bool>()), 0..80);
    (replicas, tenants, 0.0..1.0_f64).prop_map(|(came_at, tenants, slack)| {
        let replicas = came_at.len();
        let tenants = tenants.into_iter().map(|(holder, opened_at, is_busy)| Tenant {
            // A few have most of them.
            holder: (holder / 2) % replicas,
            opened_at,
            is_busy,
            moves: 0,
        });
        World { now: 300, slack, tenants: tenants.collect(), came_at }
    })
}

proptest! {
    #[test]
    fn planned_again_and_again_it_ends_with_every_share_within_the_bound(
        mut world in worlds(), turns in proptest::collection::vec(0_usize..8, 50),
    ) {
        let replicas = world.came_at.len();
        let tenants = u32::try_from(world.tenants.len()).unwrap();
        // Whoever's turn it is, then each in turn until nobody plans anything.
        let mut quiet = 0;
        let turns = turns.into_iter().map(|turn| (turn % replicas, false));
        for (replica, is_in_turn) in turns.chain((0..replicas).cycle().map(|replica| (replica, true))) {
            let moves = world.plan(replica, 1);
            quiet = if is_in_turn && moves.is_empty() { quiet + 1 } else { 0 };
            if quiet == replicas {
                break;
            }
            world.perform(moves);
            prop_assert!(world.moves() <= tenants, "{:?}", world);
        }
        prop_assert!(world.is_at_rest());
        prop_assert!(world.is_within_the_bound(), "{:?}", world);
        prop_assert!(world.tenants.iter().all(|tenant| tenant.moves <= 1), "{:?}", world);
    }

    #[test]
    fn planned_by_all_at_once_it_ends_too(mut world in worlds()) {
        let replicas = world.came_at.len();
        let mut rounds = 0;
        while !world.is_at_rest() {
            // Nobody sees what the others plan in the same round.
            let moves: Vec<Move> = (0..replicas).flat_map(|replica| world.plan(replica, 2)).collect();
            world.perform(moves);
            rounds += 1;
            prop_assert!(rounds <= 2 * world.tenants.len() + 8, "{:?}", world);
        }
        prop_assert!(world.is_within_the_bound(), "{:?}", world);
    }

    #[test]
    fn a_move_goes_to_another_replica_once_and_leaves_it_within_the_bound(world in worlds(), moves_max in 0_usize..9) {
        for replica in 0..world.came_at.len() {
            let fleet = world.seen_by(replica);
            let moves = world.plan(replica, moves_max);
            prop_assert!(moves.len() <= moves_max);
            let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
            for one in &moves {
                *taken.entry(&one.to).or_default() += 1;
                prop_assert_eq!(moves.iter().filter(|other| other.key == one.key).count(), 1);
            }
            for (to, count) in taken {
                let member = fleet.members().iter().find(|member| member.replica == to).unwrap();
                prop_assert!(!member.is_this && member.open + count <= fleet.share_max());
            }
        }
    }
}
