//! What answers hold of the process's memory, asked for before it is taken.
//!
//! The bytes of one answer are bounded, and so is how many are made at a time; what all of them may hold together is for whoever embeds
//! the ledgers to say.

use std::{fmt, sync::Arc};

use crate::LedgerError;

/// Asked for in steps of this.
const STEP_BYTES: u64 = 64 * 1024;
/// What an answer may hold without asking: most are no longer, and whoever embeds the ledgers counts so much with the call itself.
const FREE_BYTES: u64 = 16 * 1024;

/// Who says how much answers may hold, for all ledgers together.
pub trait Memory: Send + Sync + fmt::Debug {
    /// Takes so many bytes, for what is beyond the 16 KiB that each answer has without asking. `false`: there is no room for them, and none were taken.
    fn take(&self, bytes: u64) -> bool;

    /// Gives back what was taken.
    fn give_back(&self, bytes: u64);
}

/// A [`Memory`] that is asked, or nobody.
#[derive(Clone, Debug, Default)]
pub struct SharedMemory(Option<Arc<dyn Memory>>);

impl SharedMemory {
    /// This one.
    #[must_use]
    pub const fn new(memory: Arc<dyn Memory>) -> Self {
        Self(Some(memory))
    }

    pub(crate) fn hold(&self) -> Held {
        Held { memory: self.0.clone(), taken: 0, used: 0 }
    }
}

impl PartialEq for SharedMemory {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for SharedMemory {}

/// What an answer holds; given back when it is dropped.
///
/// It is no part of what the answer says: any two are equal, and a clone holds nothing.
#[derive(Debug, Default)]
pub struct Held {
    memory: Option<Arc<dyn Memory>>,
    /// In whole steps.
    taken: u64,
    used: u64,
}

impl Held {
    /// So many bytes more, or the refusal.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), LedgerError> {
        if self.try_grow(bytes) { Ok(()) } else { Err(LedgerError::MemoryShort) }
    }

    /// So many bytes more; `false`: there is no room, and nothing changed.
    pub(crate) fn try_grow(&mut self, bytes: u64) -> bool {
        let used = self.used.saturating_add(bytes);
        if used > FREE_BYTES + self.taken
            && let Some(memory) = &self.memory
        {
            let more = (used - FREE_BYTES - self.taken).next_multiple_of(STEP_BYTES);
            if !memory.take(more) {
                return false;
            }
            self.taken += more;
        }
        self.used = used;
        true
    }

    /// Takes it out of an answer whose value is no longer needed.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory
            && self.taken > 0
        {
            memory.give_back(self.taken);
        }
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Held {}

/// Bytes that a text holds as it is and as JSON.
pub(crate) fn of_text(bytes: &[u8]) -> u64 {
    let escaped = bytes.iter().map(|byte| match byte {
        // As \u0001 and the like.
        0..=0x1f => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    });
    bytes.len() as u64 + escaped.sum::<u64>()
}

/// Bytes that a blob holds as it is and as base64.
pub(crate) const fn of_blob(len: usize) -> u64 {
    let len = len as u64;
    len + len / 3 * 4 + 16
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    #[derive(Debug)]
    struct Some64(AtomicU64);

    impl Memory for Some64 {
        fn take(&self, bytes: u64) -> bool {
            self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(bytes)).is_ok()
        }

        fn give_back(&self, bytes: u64) {
            self.0.fetch_add(bytes, SeqCst);
        }
    }

    #[test]
    fn what_is_held_is_asked_for_in_steps_and_given_back_once() {
        let all = Arc::new(Some64(AtomicU64::new(3 * STEP_BYTES)));
        let memory = SharedMemory::new(all.clone());
        let mut held = memory.hold();
        assert!(held.try_grow(FREE_BYTES));
        assert_eq!(all.0.load(SeqCst), 3 * STEP_BYTES);
        for _ in 0..STEP_BYTES {
            assert!(held.try_grow(1));
        }
        assert_eq!(all.0.load(SeqCst), 2 * STEP_BYTES);
        held.grow(STEP_BYTES + 1).unwrap();
        assert_eq!(all.0.load(SeqCst), 0);
        assert!(matches!(held.grow(STEP_BYTES), Err(LedgerError::MemoryShort)));
        assert!(held.try_grow(STEP_BYTES - 1), "what was taken is there");
        drop(held.clone());
        let moved = held.take();
        drop(held);
        assert_eq!(all.0.load(SeqCst), 0);
        drop(moved);
        assert_eq!(all.0.load(SeqCst), 3 * STEP_BYTES);
    }

    #[test]
    fn a_value_counts_as_it_is_and_as_it_is_written() {
        for text in ["", "plain", "a\"b\\c", "\u{1}\n", "é"] {
            let written = serde_json::to_string(text).unwrap().len() as u64 - 2;
            let counted = of_text(text.as_bytes());
            assert!(
                (text.len() as u64 + written..=text.len() as u64 + written + 4).contains(&counted),
                "{text:?}"
            );
        }
    }
}
