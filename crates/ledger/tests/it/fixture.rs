//! A ledger in a directory of its own, with a clock and a gate that the test moves.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use leasehold_ledger::{Gate, Json, Ledger, LedgerOptions, NewEvent, ledger_path};
use leasehold_types::{Clock, Epoch, FencedReason, Moment, Position, Refusal, TenureId, Timestamp};
use tempfile::TempDir;

/// A clock that stands still, or moves on by a step each time it is read.
#[derive(Debug, Default)]
pub(crate) struct HandClock {
    nanos: AtomicU64,
    step: AtomicU64,
}

impl HandClock {
    pub(crate) fn step_by(&self, step: Duration) {
        self.step.store(u64::try_from(step.as_nanos()).unwrap(), SeqCst);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.nanos.fetch_add(self.step.load(SeqCst), SeqCst))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000)
    }
}

/// A gate that the test opens and closes, at once or after some more questions.
#[derive(Debug, Default)]
pub(crate) struct Switch(Mutex<Plan>);

#[derive(Debug, Default)]
struct Plan {
    asked: u64,
    closes: Option<(u64, Refusal)>,
}

pub(crate) const LAPSED: Refusal = Refusal::Fenced(FencedReason::Lapsed);

impl Switch {
    pub(crate) fn close(&self, refusal: Refusal) {
        self.close_after(0, refusal);
    }

    /// Lets `passes` more questions through.
    pub(crate) fn close_after(&self, passes: u64, refusal: Refusal) {
        let mut plan = self.0.lock().unwrap();
        plan.closes = Some((plan.asked + passes, refusal));
    }

    pub(crate) fn open(&self) {
        self.0.lock().unwrap().closes = None;
    }

    pub(crate) fn asked(&self) -> u64 {
        self.0.lock().unwrap().asked
    }
}

impl Gate for Switch {
    fn pass(&self) -> Result<(), Refusal> {
        let mut plan = self.0.lock().unwrap();
        plan.asked += 1;
        match plan.closes {
            Some((after, refusal)) if plan.asked > after => Err(refusal),
            _ => Ok(()),
        }
    }
}

/// A ledger and everything around it.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) switch: Arc<Switch>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) ledger: Ledger,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(LedgerOptions::default())
    }

    pub(crate) fn with(options: LedgerOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(HandClock::default());
        let switch = Arc::new(Switch::default());
        let gate: Arc<dyn Gate> = Arc::clone(&switch) as _;
        let ledger =
            Ledger::open(&ledger_path(dir.path()), epoch(1), tenure(1), Arc::clone(&clock) as _, options)
                .unwrap();
        Self { dir, clock, switch, gate, ledger }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Appends events of these kinds, each by itself.
    pub(crate) fn append(&self, kinds: &[&str]) {
        for kind in kinds {
            self.ledger.append(&self.gate, &[event(kind)]).unwrap();
        }
    }

    /// The kinds of all events.
    pub(crate) fn kinds(&self) -> Vec<String> {
        kinds(&self.ledger, &self.gate)
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.ledger.execute(&self.gate, &[leasehold_ledger::Statement::new(sql, vec![])], None).unwrap();
    }
}

pub(crate) fn kinds(ledger: &Ledger, gate: &Arc<dyn Gate>) -> Vec<String> {
    let rows = ledger.query(gate, "SELECT kind FROM events ORDER BY seq", &[]).unwrap();
    rows.rows
        .into_iter()
        .map(|mut row| match row.remove(0) {
            leasehold_ledger::Value::Text(kind) => kind,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Opens a ledger of an epoch at a path, with a clock that stands still.
pub(crate) fn open(path: &Path, number: u64) -> Ledger {
    open_with(path, number, LedgerOptions::default())
}

/// The same with these options.
pub(crate) fn open_with(path: &Path, number: u64, options: LedgerOptions) -> Ledger {
    let clock = Arc::new(HandClock::default());
    Ledger::open(path, epoch(number), tenure(number), clock, options).unwrap()
}

pub(crate) fn event(kind: &str) -> NewEvent {
    NewEvent::new(kind, "tester")
}

pub(crate) fn keyed(kind: &str, key: &str) -> NewEvent {
    event(kind).with_idem_key(key)
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

pub(crate) fn tenure(number: u64) -> TenureId {
    format!("00000000-0000-4000-8000-{number:012x}").parse().unwrap()
}

pub(crate) fn at(number: u64, seq: u64) -> Position {
    Position { epoch: epoch(number), seq }
}
