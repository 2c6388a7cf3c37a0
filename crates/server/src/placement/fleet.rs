//! The replicas that take tenants, as one moment knows them, and where a tenant belongs among them.

use std::time::Duration;

use leasehold_types::LeaseKey;

use super::{
    score::score,
    share::{Slack, even_share},
};

/// A replica that takes tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) replica: String,
    pub(crate) endpoint: String,
    /// How many tenants it has open, as far as that is known.
    pub(crate) open: u64,
    /// For how long it has been known; of the one that looks it means nothing.
    pub(crate) here_for: Duration,
    /// Whether it is the one that looks.
    pub(crate) is_this: bool,
}

/// The replicas that take tenants: seen within the ttl, not draining, with an address that can be forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fleet {
    /// In any order: nothing depends on it.
    members: Vec<Member>,
    slack: Slack,
}

impl Fleet {
    pub(crate) fn new(members: Vec<Member>, slack: Slack) -> Self {
        Self { members, slack }
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The one that looks, where it takes tenants.
    pub(crate) fn this(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.is_this)
    }

    /// How many tenants they have in all.
    pub(crate) fn total(&self) -> u64 {
        self.members.iter().fold(0, |sum, member| sum.saturating_add(member.open))
    }

    /// How many each one has where they are even.
    pub(crate) fn even_share(&self) -> u64 {
        even_share(self.total(), self.members.len())
    }

    /// How many one has at the most before it hands some over.
    pub(crate) fn share_max(&self) -> u64 {
        self.slack.share_max(self.total(), self.members.len())
    }

    /// Where a tenant that nobody has is to be opened: the highest score among the replicas that have room for one more, those that are
    /// not to be asked left out. The same one wherever it is asked for with the same knowledge. `None`: there is no replica.
    pub(crate) fn place(&self, key: &LeaseKey, without: &[String]) -> Option<&Member> {
        let asked = || self.members.iter().filter(|member| !without.contains(&member.replica));
        let total = asked().fold(1_u64, |sum, member| sum.saturating_add(member.open));
        let share_max = self.slack.share_max(total, asked().count());
        // One at least has room: they cannot all be at or above what is more than the even share.
        best_of(key, asked().filter(|member| member.open < share_max))
    }
}

/// The member with the highest score for a tenant; between equal ones the higher id.
pub(crate) fn best_of<'a>(key: &LeaseKey, members: impl Iterator<Item = &'a Member>) -> Option<&'a Member> {
    members.max_by_key(|member| (score(key, &member.replica), member.replica.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(number: usize) -> LeaseKey {
        format!("acme/u-{number}").parse().unwrap()
    }

    fn fleet(open: &[u64], slack: f64) -> Fleet {
        let members = open.iter().enumerate().map(|(number, open)| Member {
            replica: format!("ledger-{number}"),
            endpoint: format!("http://ledger-{number}:7400"),
            open: *open,
            here_for: Duration::ZERO,
            is_this: number == 0,
        });
        Fleet::new(members.collect(), Slack::new(slack).unwrap())
    }

    fn place_of(fleet: &Fleet, key: &LeaseKey) -> Option<String> {
        fleet.place(key, &[]).map(|member| member.replica.clone())
    }

    /// Opens `count` tenants one after the other where they belong; where each one is.
    fn opened(fleet: &mut Fleet, count: usize) -> Vec<String> {
        let places = (0..count).map(|number| {
            let place = place_of(fleet, &key(number)).unwrap();
            fleet.members.iter_mut().find(|member| member.replica == place).unwrap().open += 1;
            place
        });
        places.collect()
    }

    #[test]
    fn nobody_is_no_place_and_one_replica_is_every_tenants() {
        assert_eq!(place_of(&fleet(&[], 0.25), &key(1)), None);
        let one = fleet(&[1_000_000], 0.0);
        assert_eq!(place_of(&one, &key(1)).as_deref(), Some("ledger-0"));
        assert_eq!(one.place(&key(1), &["ledger-0".to_owned()]), None);
    }

    #[test]
    fn one_that_is_not_to_be_asked_is_passed_over_for_the_next() {
        let three = fleet(&[0, 0, 0], 0.25);
        let first = place_of(&three, &key(7)).unwrap();
        let second = three.place(&key(7), std::slice::from_ref(&first)).unwrap().replica.clone();
        let third = three.place(&key(7), &[first.clone(), second.clone()]).unwrap().replica.clone();
        let mut all = [first, second, third];
        all.sort();
        assert_eq!(all, ["ledger-0", "ledger-1", "ledger-2"]);
    }

    #[test]
    fn one_that_is_full_gets_nothing() {
        // 13 of 31 is what each may have at the most.
        let full = fleet(&[13, 8, 9], 0.25);
        assert!((0..200).all(|number| place_of(&full, &key(number)).unwrap() != "ledger-0"));
        let room = fleet(&[12, 9, 9], 0.25);
        assert!((0..200).any(|number| place_of(&room, &key(number)).unwrap() == "ledger-0"));
    }

    #[test]
    fn tenants_spread() {
        for replicas in [2, 3, 5, 8] {
            let mut open: BTreeMap<String, u64> = BTreeMap::new();
            // Far from every bound, so that hashing alone decides.
            let even = fleet(&vec![1_000_000; replicas], 0.25);
            for number in 0..3_000 {
                *open.entry(place_of(&even, &key(number)).unwrap()).or_default() += 1;
            }
            let mean = 3_000 / replicas as u64;
            assert_eq!(open.len(), replicas);
            assert!(open.values().all(|count| (mean * 8 / 10..=mean * 12 / 10).contains(count)), "{open:?}");
        }
    }

    proptest! {
        #[test]
        fn a_replica_that_leaves_moves_only_its_own(
            replicas in 2_usize..9, gone in 0_usize..8, tenants in 1_usize..60,
        ) {
            let before = fleet(&vec![1_000_000; replicas], 0.25);
            let gone = format!("ledger-{}", gone % replicas);
            let mut after = before.clone();
            after.members.retain(|member| member.replica != gone);
            for number in 0..tenants {
                let (was, is) = (place_of(&before, &key(number)), place_of(&after, &key(number)));
                prop_assert!(was == is || was.as_deref() == Some(&gone));
                prop_assert_eq!(after.place(&key(number), &[]), before.place(&key(number), std::slice::from_ref(&gone)));
            }
        }

        #[test]
        fn the_bound_holds_for_any_sequence(
            replicas in 1_usize..9, tenants in 0_usize..120, slack in 0.0..2.0_f64,
        ) {
            let mut all = fleet(&vec![0; replicas], slack);
            opened(&mut all, tenants);
            prop_assert_eq!(all.total(), tenants as u64);
            prop_assert!(all.members.iter().all(|member| member.open <= all.share_max()), "{:?}", all);
        }

        #[test]
        fn whatever_the_loads_somebody_has_room_and_the_order_is_nothing(
            open in proptest::collection::vec(0_u64..50, 1..9), slack in 0.0..1.0_f64, turn in 0_usize..8,
            tenant in 0_usize..1_000,
        ) {
            let one = fleet(&open, slack);
            let mut other = one.clone();
            let len = other.members.len();
            other.members.rotate_left(turn % len);
            prop_assert!(place_of(&one, &key(tenant)).is_some());
            prop_assert_eq!(place_of(&one, &key(tenant)), place_of(&other, &key(tenant)));
        }

        #[test]
        fn between_equal_scores_the_higher_id_has_it(open in 0_u64..9) {
            // The same replica twice, as a row that was read beside its successor: one of them, always the same.
            let mut twice = fleet(&[open, open], 0.25);
            twice.members[1].replica = twice.members[0].replica.clone();
            let first = place_of(&twice, &key(3));
            twice.members.reverse();
            prop_assert_eq!(place_of(&twice, &key(3)), first);
        }
    }
}
