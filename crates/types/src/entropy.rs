//! Randomness and ids, injected: seeded in tests, the operating system's in production.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use uuid::Uuid;

use crate::{AttemptId, TenureId};

/// The source of every id and every jitter in a process.
pub struct Entropy(Mutex<StdRng>);

impl Entropy {
    /// Seeded by the operating system.
    #[must_use]
    pub fn system() -> Self {
        Self(Mutex::new(rand::make_rng()))
    }

    /// The same ids in the same order for the same seed: for tests and replays.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// A fresh id for one attempt to acquire a lease.
    pub fn tenure_id(&self) -> TenureId {
        TenureId::new(self.uuid())
    }

    /// A fresh id for one attempt to write an object.
    pub fn attempt_id(&self) -> AttemptId {
        AttemptId::new(self.next())
    }

    /// A fresh random (version 4) UUID.
    pub fn uuid(&self) -> Uuid {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Thirty-two fresh bytes: the material of a key.
    pub fn key_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.next().to_be_bytes());
        }
        bytes
    }

    /// `of`, lengthened or shortened by up to a tenth, so that what started together does not stay together.
    pub fn jittered(&self, of: Duration) -> Duration {
        let tenth = of / 10;
        let span = u64::try_from(tenth.as_nanos()).unwrap_or(u64::MAX / 2).saturating_mul(2);
        let by = if span == 0 { 0 } else { self.next() % span };
        of.saturating_sub(tenth).saturating_add(Duration::from_nanos(by))
    }

    fn next(&self) -> u64 {
        // A generator has no state that a panic elsewhere could leave half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_never_repeats_within_a_run() {
        let (one, other) = (Entropy::seeded(7), Entropy::seeded(7));
        let first = one.tenure_id();
        assert_eq!(first, other.tenure_id());
        assert_ne!(first, one.tenure_id());
    }

    #[test]
    fn jitter_stays_within_a_tenth() {
        let entropy = Entropy::seeded(1);
        for _ in 0..1_000 {
            let wait = entropy.jittered(Duration::from_secs(10));
            assert!(wait >= Duration::from_secs(9) && wait <= Duration::from_secs(11), "{wait:?}");
        }
        assert_eq!(entropy.jittered(Duration::ZERO), Duration::ZERO);
    }
}
