//! The bounds of a ledger: past one of them a call gets a typed error, and memory is not what pays.

use std::time::Duration;

use crate::SharedMemory;

/// What one call may cost. The defaults are for a service whose tenants share a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long the SQL of one call may run (5 s).
    pub statement_time: Duration,
    /// How long a call waits for a connection that others use (30 s).
    pub wait: Duration,
    /// Rows of one result, and events of one page (10,000).
    pub rows_max: usize,
    /// Bytes of all values of one call's results (8 MiB).
    pub result_bytes_max: usize,
    /// Bytes of one value or row inside SQLite (4 MiB). In a statement that names many columns and functions they may be fewer, so that
    /// all of its values together stay within [`statement_bytes_max`](Self::statement_bytes_max); never fewer than 256 KiB.
    pub value_bytes_max: usize,
    /// Bytes that the values of a running statement may hold (256 MiB); and a quarter of what [`limit_memory`](crate::limit_memory) set.
    pub statement_bytes_max: usize,
    /// Columns and functions that one statement may name, those of its views and triggers included (2,000).
    pub terms_max: usize,
    /// Bytes that one statement may write into temporary files, and into the log, what it writes again counted again (8 GiB). Counted where
    /// the system counts them.
    pub temp_bytes_max: u64,
    /// Bytes of one statement's text (256 KiB).
    pub sql_bytes_max: usize,
    /// Parameters of one statement (1,000).
    pub params_max: usize,
    /// Statements of one `execute` (100).
    pub statements_max: usize,
    /// Events of one batch (1,000).
    pub batch_events_max: usize,
    /// Bytes of one event: its payload and its texts (256 KiB).
    pub event_bytes_max: usize,
    /// Bytes of all events of one batch (8 MiB).
    pub batch_bytes_max: usize,
    /// Bytes of an `execute`'s answer that is kept under its idempotency key (256 KiB).
    pub kept_answer_bytes_max: usize,
    /// Bytes that the ledger's file may have (none). One that has more already, because the bound was higher before, is opened all the
    /// same and grows no further.
    pub file_bytes_max: Option<u64>,
    /// Who is asked before an answer's bytes are held (nobody).
    pub memory: SharedMemory,
}

impl Default for Limits {
    fn default() -> Self {
        const KIB: usize = 1024;
        Self {
            statement_time: Duration::from_secs(5),
            wait: Duration::from_secs(30),
            rows_max: 10_000,
            result_bytes_max: 8 * KIB * KIB,
            value_bytes_max: 4 * KIB * KIB,
            statement_bytes_max: 256 * KIB * KIB,
            terms_max: 2_000,
            temp_bytes_max: 8 << 30,
            sql_bytes_max: 256 * KIB,
            params_max: 1_000,
            statements_max: 100,
            batch_events_max: 1_000,
            event_bytes_max: 256 * KIB,
            batch_bytes_max: 8 * KIB * KIB,
            kept_answer_bytes_max: 256 * KIB,
            file_bytes_max: None,
            memory: SharedMemory::default(),
        }
    }
}

/// How a ledger is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerOptions {
    /// What one call may cost.
    pub limits: Limits,
    /// Reader connections that may be open at a time, at least 1 (4). They are opened when needed, about 150 KB each.
    pub readers_max: usize,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), readers_max: 4 }
    }
}
