//! What a seed chooses.

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

/// A source of choices. The same seed makes the same ones.
#[derive(Debug)]
pub(super) struct Chance(StdRng);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number below `end`, which is not zero.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.0.next_u64() % end).unwrap_or_default()
    }

    /// Whether this is the one time in `times`.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `all`, which is not empty.
    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// One of `all`, each as likely as its weight.
    pub(super) fn weighted<T: Copy>(&mut self, all: &[(usize, T)]) -> T {
        let mut left = self.below(all.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in all {
            if left < *weight {
                return *one;
            }
            left -= weight;
        }
        all[0].1
    }
}
