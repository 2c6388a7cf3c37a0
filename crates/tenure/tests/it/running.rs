//! A statement that runs while its tenure ends: nobody waits for it, and the gate stops it from inside SQLite (design.md section 3).

use std::time::Duration;

use leasehold_ledger::Statement;
use leasehold_tenure::{Handle, LedgerRef, TenureError};
use leasehold_testkit::{
    CloudPair, EmbeddedPair, Fleet, PATIENCE, Pair, Replica, by_code, eventually, insert, keys_of, tenant,
    within,
};
use leasehold_types::{ErrorCode, LeaseKey};
use tokio::task::JoinHandle;

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
/// So often a running statement looks at the clock before it counts as running: nobody else reads it meanwhile.
const LOOKS: u64 = 50;

/// How a statement is run.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Beside the writer, as work.
    Query,
    /// In a write transaction, as work.
    Execute,
    /// Beside the writer, by a view that counts as no work.
    Outside,
}

const WAYS: [Way; 3] = [Way::Query, Way::Execute, Way::Outside];

async fn endless(ledger: LedgerRef, way: Way) -> Result<(), TenureError> {
    match way {
        Way::Query | Way::Outside => ledger.query(ENDLESS, vec![]).await.map(drop),
        Way::Execute => {
            let write = Statement::new("CREATE TABLE never (x)", vec![]);
            ledger.execute(vec![write, Statement::new(ENDLESS, vec![])], None).await.map(drop)
        }
    }
}

/// A replica whose one tenant has a statement that runs and does not end by itself: its time is the fleet's, which stands still.
struct Running<P> {
    fleet: Fleet<P>,
    a: Replica,
    key: LeaseKey,
    handle: Handle,
    statement: JoinHandle<Result<(), ErrorCode>>,
}

impl<P: Pair> Running<P> {
    async fn begin(subject: &str, way: Way) -> Self {
        let fleet = Fleet::<P>::manual().await;
        let a = fleet.replica_with("a", |options| options.drain_timeout = Duration::from_millis(100));
        let key = tenant(&format!("running-{subject}-{way:?}"));
        let handle = a.router.open(&key).await.expect("a opens");
        insert(&handle, "k-1");
        let statement = match way {
            Way::Query | Way::Execute => {
                let work = handle.run_async(move |ledger| endless(ledger, way));
                tokio::spawn(async move { by_code(work.await).and_then(by_code) })
            }
            Way::Outside => {
                let ledger = handle.ledger();
                tokio::spawn(async move { by_code(endless(ledger, way).await) })
            }
        };
        let running = Self { fleet, a, key, handle, statement };
        running.goes_on().await;
        running
    }

    /// Shows that the statement is at work, by its looks at the clock.
    async fn goes_on(&self) {
        let before = self.a.clock.reads();
        eventually(PATIENCE, "the statement runs", async || self.a.clock.reads() > before + LOOKS).await;
    }

    async fn stopped(self, code: ErrorCode) {
        let stopped = within(PATIENCE, "the statement", self.statement).await.expect("it does not panic");
        assert_eq!(stopped, Err(code));
        assert!(!self.handle.is_open());
    }
}

async fn a_forget_stops_what_runs<P: Pair>() {
    for way in WAYS {
        let running = Running::<P>::begin("forget", way).await;
        within(PATIENCE, "the forget", running.handle.forget()).await.expect("forgotten");
        running.stopped_by_the_end().await;
    }
}

async fn an_abandon_stops_what_runs<P: Pair>() {
    for way in WAYS {
        let running = Running::<P>::begin("abandon", way).await;
        within(PATIENCE, "the abandon", running.handle.abandon()).await.expect("abandoned");
        running.stopped_by_the_end().await;
    }
}

impl<P: Pair> Running<P> {
    /// By whichever of the two refusals it met first: the tenure is ending, or has ended.
    async fn stopped_by_the_end(self) {
        let stopped = within(PATIENCE, "the statement", self.statement).await.expect("it does not panic");
        assert!(matches!(stopped, Err(ErrorCode::Draining | ErrorCode::Fenced)), "{stopped:?}");
        assert_eq!(self.handle.in_flight(), 0);
    }
}

async fn a_lease_that_lapses_or_is_lost_stops_what_runs<P: Pair>() {
    for way in WAYS {
        let running = Running::<P>::begin("lapsed", way).await;
        // The stores, as long as they are needed.
        let fleet = running.fleet.clone();
        let b = fleet.replica("b");
        fleet.outlive_leases().await;
        let key = running.key.clone();
        running.stopped(ErrorCode::Fenced).await;
        b.router.open(&key).await.expect("b takes over");
    }
}

async fn a_drain_that_gives_up_lets_work_go_on_and_stops_what_is_none<P: Pair>() {
    for way in WAYS {
        let running = Running::<P>::begin("drain", way).await;
        let handing_off = within(PATIENCE, "the handoff", running.handle.handoff()).await;
        if let Way::Outside = way {
            handing_off.expect("nothing is waited for");
            running.stopped_by_the_end().await;
            continue;
        }
        assert_eq!(by_code(handing_off), Err(ErrorCode::DrainTimeout));
        assert!(running.handle.is_open(), "the tenant serves again");
        running.goes_on().await;
        // Its own time is over before the lease is.
        running.fleet.advance(Duration::from_secs(6)).await;
        let stopped = within(PATIENCE, "the statement", running.statement).await.expect("it does not panic");
        assert_eq!(stopped, Err(ErrorCode::StatementTimeout));
        assert_eq!(keys_of(&running.handle), ["k-1"]);
        within(PATIENCE, "the handoff", running.handle.handoff()).await.expect("handed off");
    }
}

/// Each of them over both pairs.
macro_rules! over_each_pair {
    ($($test:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                Box::pin(super::$test::<super::EmbeddedPair>()).await;
            })+
        }

        mod cloud {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                Box::pin(super::$test::<super::CloudPair>()).await;
            })+
        }
    };
}

over_each_pair!(
    a_forget_stops_what_runs,
    an_abandon_stops_what_runs,
    a_lease_that_lapses_or_is_lost_stops_what_runs,
    a_drain_that_gives_up_lets_work_go_on_and_stops_what_is_none,
);
