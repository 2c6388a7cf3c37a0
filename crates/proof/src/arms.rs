//! What happens at a point: an arm names the point, which time it counts, and what is done there.

use std::{
    fmt,
    io::{BufRead as _, Write as _},
    str::FromStr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_testkit::{BlobOp, FaultyBlobs, FaultyLeases, LeaseOp};
use leasehold_types::{LeaseKey, Point, PointError, Points};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::watch;

/// How long a signal needs at the most to reach all threads of a process.
const SIGNALLED_WITHIN: Duration = Duration::from_millis(200);

/// What is done at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SIGKILL of the own process.
    Kill,
    /// SIGSTOP of the own process; it goes on with SIGCONT.
    Stop,
    /// The step waits until it is told to go on; the rest of the process does not.
    Hold,
    /// The next object of the tenant that is put is put, and its answer is lost.
    LosePut,
    /// The next row that is read is not answered.
    LoseRow,
    /// The blob store is away from here on.
    BlobsDown,
    /// It is back.
    BlobsUp,
}

const ACTIONS: [(&str, Action); 7] = [
    ("kill", Action::Kill),
    ("stop", Action::Stop),
    ("hold", Action::Hold),
    ("lose-put", Action::LosePut),
    ("lose-row", Action::LoseRow),
    ("blobs-down", Action::BlobsDown),
    ("blobs-up", Action::BlobsUp),
];

/// `<point>:<which time>:<action>`, such as `publish.manifest.before:1:kill`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Where.
    pub point: Point,
    /// The how-manieth time, from 1, counted from the arming on.
    pub nth: u32,
    /// What.
    pub action: Action,
}

/// A text that is no arm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArmError {
    /// It has other parts.
    #[error("`{0}` is no arm: write <point>:<which time>:<action>")]
    Shape(String),
    /// Its point is none.
    #[error(transparent)]
    Point(#[from] PointError),
}

impl FromStr for Arm {
    type Err = ArmError;

    fn from_str(text: &str) -> Result<Self, ArmError> {
        let shape = || ArmError::Shape(text.to_owned());
        let mut parts = text.split(':');
        let (Some(point), Some(nth), Some(action), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(shape());
        };
        let nth = nth.parse().ok().filter(|nth| *nth > 0).ok_or_else(shape)?;
        let action = ACTIONS.iter().find(|(name, _)| *name == action).ok_or_else(shape)?.1;
        Ok(Self { point: point.parse()?, nth, action })
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = ACTIONS.iter().find(|(_, action)| *action == self.action).map_or("", |(name, _)| *name);
        write!(f, "{}:{}:{action}", self.point, self.nth)
    }
}

/// What is armed in this process, for one tenant and for what is done for all at once.
#[derive(Clone)]
pub struct Arms {
    tenant: LeaseKey,
    blobs: FaultyBlobs,
    leases: FaultyLeases,
    /// Whether the lease store's file is shared with other processes, which a process that is stopped inside a call keeps out.
    shares_a_file: bool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// With how many times are left until it counts.
    armed: Mutex<Vec<(Arm, u32)>>,
    /// How often it was told to go on.
    told: Mutex<u64>,
    telling: Condvar,
    /// Points where something was done, until somebody has waited for them.
    fired: watch::Sender<Vec<Point>>,
}

impl Arms {
    /// Nothing armed yet. The faults are done to these stores.
    #[must_use]
    pub fn new(tenant: LeaseKey, blobs: FaultyBlobs, leases: FaultyLeases, shares_a_file: bool) -> Self {
        Self { tenant, blobs, leases, shares_a_file, shared: Arc::default() }
    }

    /// Arms one more.
    pub fn arm(&self, arm: Arm) {
        self.armed().push((arm, arm.nth));
    }

    /// Lets go of whatever is held.
    pub fn go(&self) {
        *self.told() += 1;
        self.shared.telling.notify_all();
    }

    /// Waits until something was done at `point`, once for each time.
    pub async fn until_fired(&self, point: Point) {
        let mut fired = self.shared.fired.subscribe();
        // The sender lives in `self`.
        let _ = fired.wait_for(|fired| fired.contains(&point)).await;
        self.shared.fired.send_modify(|fired| {
            if let Some(at) = fired.iter().position(|one| *one == point) {
                fired.remove(at);
            }
        });
    }

    /// Obeys the lines of the standard input, `arm <arm>` and `go`, until that ends. Blocks its thread.
    pub fn obey_input(&self) {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match line.split_once(' ') {
                Some(("arm", arm)) => match arm.parse() {
                    Ok(arm) => {
                        self.arm(arm);
                        say(&format!("armed {arm}"));
                    }
                    Err(error) => say(&format!("error {error}")),
                },
                None if line == "go" => self.go(),
                _ => say(&format!("error `{line}` is no order")),
            }
        }
    }

    fn armed(&self) -> MutexGuard<'_, Vec<(Arm, u32)>> {
        self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> MutexGuard<'_, u64> {
        self.shared.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `told`: how often it had been told to go on when it came here.
    fn perform(&self, action: Action, told: u64) {
        match action {
            Action::Kill => signal_self(Signal::KILL),
            Action::Stop => self.stop(),
            Action::Hold => self.hold(told),
            Action::LosePut => {
                // Not what is put for others meanwhile: a house is kept for every forgotten tenant of the store.
                let own = format!("{}/", self.tenant);
                self.blobs.lose_next_answer(BlobOp::Put, move |name| name.starts_with(&own));
            }
            Action::LoseRow => self.leases.lose_answer_of(LeaseOp::Read),
            Action::BlobsDown => self.blobs.down(true),
            Action::BlobsUp => self.blobs.down(false),
        }
    }

    fn stop(&self) {
        // A process that is stopped while it has SQLite's lock stops every other one on the file: that is the embedded pair's own
        // limit, and not what is tested. So it is stopped between two calls.
        let holds = self.shares_a_file.then(|| LEASE_OPS.map(|op| self.leases.hold(op)));
        if holds.is_some() {
            let quiet = self.leases.until_quiet();
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(quiet));
        }
        signal_self(Signal::STOP);
        drop(holds);
    }

    fn hold(&self, before: u64) {
        tokio::task::block_in_place(|| {
            drop(self.shared.telling.wait_while(self.told(), |told| *told == before));
        });
    }
}

/// All calls of a lease store.
const LEASE_OPS: [LeaseOp; 14] = [
    LeaseOp::Acquire,
    LeaseOp::Renew,
    LeaseOp::Release,
    LeaseOp::RaiseFloor,
    LeaseOp::StoreReceipt,
    LeaseOp::AdvanceEpoch,
    LeaseOp::Read,
    LeaseOp::List,
    LeaseOp::DueRechecks,
    LeaseOp::ScheduleRecheck,
    LeaseOp::Announce,
    LeaseOp::Retire,
    LeaseOp::Replicas,
    LeaseOp::BindDerivationKey,
];

impl Points for Arms {
    fn reached(&self, point: Point, key: Option<&LeaseKey>) {
        if key.is_some_and(|key| *key != self.tenant) {
            return;
        }
        let mut due = Vec::new();
        self.armed().retain_mut(|(arm, left)| {
            if arm.point != point {
                return true;
            }
            *left -= 1;
            if *left == 0 {
                due.push(arm.action);
            }
            *left > 0
        });
        for action in due {
            // Before anybody hears of it, so that no order to go on is missed.
            let told = *self.told();
            say(&format!("reached {point}"));
            self.shared.fired.send_modify(|fired| fired.push(point));
            self.perform(action, told);
        }
    }
}

impl fmt::Debug for Arms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arms").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

/// One line on the standard output, whole, before anything else is done.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever does not listen any more has no use for it.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Sends a signal that ends or stops this process. It reaches one thread after the other, and this one must not go on meanwhile: it
/// waits, and by nothing that needs another thread, since it may be here with a lock that those want.
fn signal_self(signal: Signal) {
    if let Err(error) = kill_process(getpid(), signal) {
        say(&format!("error no signal could be sent: {error}"));
    }
    let never = (Mutex::new(()), Condvar::new());
    let wait =
        || never.1.wait_timeout(never.0.lock().unwrap_or_else(PoisonError::into_inner), SIGNALLED_WITHIN);
    tokio::task::block_in_place(|| drop(wait()));
}

#[cfg(test)]
mod tests {
    use leasehold_blob::{BlobStore as _, DirectoryStore, Payload};
    use leasehold_lease::SqliteLeaseStore;
    use leasehold_types::{Act, SystemClock};

    use super::*;

    #[tokio::test]
    async fn what_is_put_for_another_tenant_does_not_take_the_loss_of_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let blobs =
            FaultyBlobs::new(Arc::new(DirectoryStore::open_without_sync(&dir.path().join("store")).unwrap()));
        let leases = FaultyLeases::new(Arc::new(
            SqliteLeaseStore::open(&dir.path().join("leases.db"), Arc::new(SystemClock)).unwrap(),
        ));
        let arms = Arms::new("acme/a".parse().unwrap(), blobs.clone(), leases, false);
        arms.perform(Action::LosePut, 0);
        let put = async |name: &str| {
            let payload = Payload::Bytes(bytes::Bytes::from_static(b"x"));
            blobs.put_if_absent(&name.parse().unwrap(), payload).await
        };
        for name in
            ["_floors/acme/a/e00000001.json", "acme/a-b/e00000001/base.json", "acme/b/e00000001/base.json"]
        {
            assert!(put(name).await.is_ok(), "{name}");
        }
        assert!(put("acme/a/e00000001/snap-000001.json").await.is_err(), "the answer of its own is lost");
        assert!(put("acme/a/e00000001/snap-000002.json").await.is_ok(), "once");
    }

    #[test]
    fn an_arm_is_a_point_a_number_and_an_action() {
        let arm: Arm = "publish.manifest.after:2:lose-put".parse().unwrap();
        assert_eq!(arm, Arm { point: Point::After(Act::PublishManifest), nth: 2, action: Action::LosePut });
        for (name, action) in ACTIONS {
            let arm = Arm { action, ..arm };
            assert_eq!(arm.to_string(), format!("publish.manifest.after:2:{name}"));
            assert_eq!(arm.to_string().parse(), Ok(arm));
        }
        for text in
            ["", "open.pin.before", "open.pin.before:0:kill", "open.pin.before:1:stroke", "open:1:kill"]
        {
            assert!(text.parse::<Arm>().is_err(), "{text}");
        }
    }
}
