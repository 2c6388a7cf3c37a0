//! How long a statement runs between two looks at the gate, in real time.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use leasehold_ledger::Gate;
use leasehold_types::Refusal;

use crate::fixture::World;

/// What may pass at the most, on a machine that does other things too. In memory the sort below would be one step.
const GAP_MAX: Duration = Duration::from_secs(1);

/// Measures the time between questions.
#[derive(Debug)]
struct Gaps(Mutex<(Instant, Duration)>);

impl Gate for Gaps {
    fn pass(&self) -> Result<(), Refusal> {
        let now = now();
        let mut gaps = self.0.lock().unwrap();
        let gap = now - gaps.0;
        *gaps = (now, gaps.1.max(gap));
        Ok(())
    }
}

#[test]
fn a_sort_is_looked_at_while_it_runs() {
    let world = World::new();
    for sorts in [
        "SELECT max(at) FROM (SELECT row_number() OVER (ORDER BY y) AS at FROM n)",
        "SELECT count(*) FROM (SELECT y, count(*) FROM n GROUP BY y)",
    ] {
        let gaps = Arc::new(Gaps(Mutex::new((now(), Duration::ZERO))));
        let gate: Arc<dyn Gate> = gaps.clone();
        let sql = format!(
            "WITH RECURSIVE n(x, y) AS (SELECT 1, random() UNION ALL SELECT x + 1, random() FROM n WHERE x < 3000000) {sorts}"
        );
        let began = now();
        world.ledger.query(&gate, &sql, &[]).unwrap();
        let (_, longest) = *gaps.0.lock().unwrap();
        println!("{sorts}: {:?}, at the most {longest:?} between two looks", began.elapsed());
        assert!(longest < GAP_MAX, "{sorts}: {longest:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
fn now() -> Instant {
    Instant::now()
}
