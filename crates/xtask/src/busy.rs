//! Other people's load: cores that have something else to do while the suites run.

use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

/// One busy thread for each core, until this is dropped.
#[derive(Debug)]
pub(crate) struct BusyCores {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyCores {
    /// Makes every core busy.
    pub(crate) fn start() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            })
        };
        let threads = (0..cores).map(spin).collect();
        Self { stop, threads }
    }

    /// How many cores are kept busy.
    pub(crate) fn cores(&self) -> usize {
        self.threads.len()
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A busy loop has nothing in it that could panic.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_end_when_the_load_is_dropped() {
        let busy = BusyCores::start();
        assert!(busy.cores() >= 1);
        let stop = Arc::clone(&busy.stop);
        drop(busy);
        assert_eq!(Arc::strong_count(&stop), 1);
    }
}
