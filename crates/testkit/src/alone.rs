//! Fleets in real time run alone, whichever runner runs them.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static TURN: RwLock<()> = RwLock::const_new(());

/// A fleet's right to run: shared among fleets whose time is moved by hand, exclusive for one in real time, whose checks
/// would else measure its neighbours. A test makes one fleet at the most, or waits for itself.
pub(crate) enum Turn {
    /// Beside others.
    Shared { _guard: RwLockReadGuard<'static, ()> },
    /// By itself.
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

impl Turn {
    pub(crate) async fn shared() -> Self {
        Self::Shared { _guard: TURN.read().await }
    }

    pub(crate) async fn alone() -> Self {
        Self::Alone { _guard: TURN.write().await }
    }
}
