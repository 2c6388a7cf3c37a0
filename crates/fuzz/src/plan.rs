//! How much is made up, and from which seed.

use std::env;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// What a run without a wish makes up for each format.
const CASES: u32 = 768;
/// The seed of a run without a wish: the same inputs on every machine.
const SEED: u64 = 1;

/// How many inputs are made up for a format, and from which seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Inputs for each format.
    pub cases: u32,
    /// What they are made up from. The same seed makes up the same inputs.
    pub seed: u64,
}

impl Plan {
    /// The variable that says how many. It begins as what is the suites' own does, so that no replica takes it for a key.
    pub const CASES: &str = "LEASEHOLD_TEST_FUZZ_CASES";
    /// The variable that names the only format that is wished for.
    pub const FORMAT: &str = "LEASEHOLD_TEST_FUZZ_FORMAT";
    /// The variable that says the seed.
    pub const SEED: &str = "LEASEHOLD_TEST_FUZZ_SEED";

    /// What the environment wishes, as `cargo xtask fuzz` sets it; else the bounded run of every build.
    ///
    /// # Panics
    ///
    /// When a wish is no number: a run that does something else than what it was asked for finds nothing.
    #[must_use]
    pub fn of_environment() -> Self {
        Self::of(|name| env::var(name).ok())
    }

    fn of(wish: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| {
            wish(name)
                .map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is `{text}`, no number")))
        };
        let cases = number(Self::CASES).map_or(CASES, |cases| u32::try_from(cases).unwrap_or(u32::MAX));
        Self { cases, seed: number(Self::SEED).unwrap_or(SEED) }
    }

    /// Whether the environment wishes for this format, or for every one.
    #[must_use]
    pub fn is_wished(format: &str) -> bool {
        env::var(Self::FORMAT).map_or(true, |wished| wished == format)
    }

    /// What makes it up.
    #[must_use]
    pub fn runner(self) -> TestRunner {
        let config = Config {
            cases: self.cases,
            // What is found is kept in the corpus, by its bytes: a seed means something else as soon as a corpus grows.
            failure_persistence: None,
            max_shrink_iters: 4_096,
            ..Config::default()
        };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{
        arbitrary::any,
        strategy::{Strategy as _, ValueTree as _},
    };

    use super::*;

    #[test]
    fn a_seed_makes_up_the_same_again() {
        let first = |seed: u64| {
            let mut runner = Plan { cases: 1, seed }.runner();
            any::<[u8; 16]>().new_tree(&mut runner).unwrap().current()
        };
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
    }

    #[test]
    fn a_wish_is_a_number_or_an_error() {
        assert_eq!(Plan::of(|_| None), Plan { cases: CASES, seed: SEED });
        let wished = Plan::of(|name| Some(if name == Plan::SEED { "9" } else { "10" }.to_owned()));
        assert_eq!(wished, Plan { cases: 10, seed: 9 });
        assert!(std::panic::catch_unwind(|| Plan::of(|_| Some("many".to_owned()))).is_err());
    }
}
