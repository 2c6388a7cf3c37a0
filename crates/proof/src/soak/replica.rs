//! A replica of a soak, and its lives.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_blob::BlobStore;
use leasehold_lease::LeaseStore;
use leasehold_tenure::{Backends, Observer, OptionsError, Router, RouterOptions, TenureEvent};
use leasehold_testkit::{FaultyBlobs, FaultyLeases};
use leasehold_types::{Entropy, NoPoints, ReplicaId};

use super::{
    book::Book,
    plan::Rhythm,
    time::{ReplicaClock, ReplicaTimer, Time},
};

/// Whether callers may come.
#[derive(Debug)]
pub(super) enum Life {
    /// They may.
    Up(Router),
    /// It closes; the flag is set once it is closed.
    Closing(Arc<AtomicBool>),
}

/// One replica: what it stands on outlives its router, as a host outlives a process.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) at: usize,
    pub(super) id: ReplicaId,
    pub(super) clock: ReplicaClock,
    pub(super) timer: ReplicaTimer,
    pub(super) blobs: FaultyBlobs,
    pub(super) leases: FaultyLeases,
    pub(super) state_root: PathBuf,
    pub(super) life: Life,
    pub(super) is_paused: bool,
    /// How many faults are on it at the moment.
    pub(super) troubles: u32,
    /// How long there has been none by now.
    pub(super) well_for: Duration,
    /// Whether it keeps house by itself: that looks every minute, which real time does not have here.
    keeps_house: bool,
    /// Which life this is.
    lives: u64,
    seed: u64,
    rhythm: Rhythm,
    book: Arc<Book>,
}

impl Replica {
    /// Replica number `at`, started.
    pub(super) fn start(
        at: usize,
        stores: (Arc<dyn LeaseStore>, Arc<dyn BlobStore>),
        state_root: PathBuf,
        time: &Time,
        (seed, rhythm): (u64, Rhythm),
        book: &Arc<Book>,
    ) -> Result<Self, crate::ProofError> {
        let mut replica = Self {
            at,
            id: format!("r{at}").parse()?,
            clock: ReplicaClock::new(time.base()),
            timer: ReplicaTimer::new(time),
            blobs: FaultyBlobs::new(stores.1),
            leases: FaultyLeases::new(stores.0),
            state_root,
            life: Life::Closing(Arc::new(AtomicBool::new(true))),
            is_paused: false,
            troubles: 0,
            well_for: Duration::ZERO,
            keeps_house: time.is_by_hand(),
            lives: 0,
            seed,
            rhythm,
            book: Arc::clone(book),
        };
        replica.begin()?;
        Ok(replica)
    }

    /// A new life under the same id, with the same directory.
    pub(super) fn begin(&mut self) -> Result<(), OptionsError> {
        let mut options = RouterOptions::new(self.state_root.clone(), self.id.clone());
        self.rhythm.apply(&mut options);
        let (book, at, name) = (Arc::clone(&self.book), self.at, self.id.to_string());
        let observer: Observer = Arc::new(move |event: &TenureEvent| book.observed(at, &name, event));
        options.observer = Some(observer);
        self.lives += 1;
        let own = self.seed ^ ((self.at as u64 + 1) << 32) ^ (self.lives << 48);
        let backends = Backends {
            leases: Arc::new(self.leases.clone()),
            blobs: Arc::new(self.blobs.clone()),
            clock: Arc::new(self.clock.clone()),
            timer: Arc::new(self.timer.clone()),
            entropy: Arc::new(Entropy::seeded(own)),
            points: Arc::new(NoPoints),
        };
        let router = Router::new(options, backends)?;
        if self.keeps_house {
            router.spawn_housekeeping();
        }
        self.life = Life::Up(router);
        Ok(())
    }

    /// The router, if callers may come.
    pub(super) fn router(&self) -> Option<&Router> {
        match &self.life {
            Life::Up(router) if !self.is_paused => Some(router),
            _ => None,
        }
    }

    /// Whether it is closed and may begin anew.
    pub(super) fn is_closed(&self) -> bool {
        matches!(&self.life, Life::Closing(closed) if closed.load(Ordering::SeqCst))
    }

    /// Time has passed.
    pub(super) fn passed(&mut self, by: Duration) {
        if !self.is_paused {
            self.timer.elapse(by);
        }
        self.well_for = if self.troubles == 0 { self.well_for + by } else { Duration::ZERO };
    }
}
