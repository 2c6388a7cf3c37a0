//! Steady load: writers of every kind and followers, and at the end the judgement of what they were told.

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};

use leasehold_testkit::{PATIENCE, within};
use leasehold_types::{Clock as _, LeaseKey, Moment, SystemClock};
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    clients::{self, patient, tenants},
    fleet::Fleet,
    follower::{Followed, follow},
    report::Report,
    writer::{Kind, Writer, Written, prepare},
};

/// How much load.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// One writer each: with idempotency keys, without, and by SQL, in turns.
    pub(crate) tenants: Range<usize>,
    /// How long a writer waits between an answer and the next write.
    pub(crate) every: Duration,
    /// How many of the tenants with events are followed.
    pub(crate) followers: usize,
}

/// Load under way.
pub(crate) struct Load {
    stop: watch::Sender<bool>,
    writers: Vec<JoinHandle<Written>>,
    /// Told at the end how many events there are.
    followers: Vec<(LeaseKey, watch::Sender<Option<usize>>, JoinHandle<Followed>)>,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) written: Vec<Written>,
    followed: Vec<Followed>,
    /// By tenant, all that is there: events, or the rows of the table.
    histories: BTreeMap<LeaseKey, Vec<String>>,
}

impl Load {
    /// Starts it; when this returns, every tenant is there.
    pub(crate) async fn start(fleet: &Fleet, plan: Plan) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut load = Self { stop, writers: Vec::new(), followers: Vec::new() };
        for (number, tenant) in tenants(plan.tenants).into_iter().enumerate() {
            let kind = [Kind::Keyed, Kind::Unkeyed, Kind::Sql][number % 3];
            prepare(&fleet.door, &tenant).await;
            let writer = Writer {
                door: fleet.door.clone(),
                recorder: Arc::clone(&fleet.recorder),
                every: plan.every,
                written: Written::new(tenant.clone(), kind),
            };
            load.writers.push(tokio::spawn(writer.run(stopped.clone())));
            if kind != Kind::Sql && load.followers.len() < plan.followers {
                let (tell, until) = watch::channel(None);
                let follower = tokio::spawn(follow(fleet.door.clone(), tenant.clone(), until));
                load.followers.push((tenant, tell, follower));
            }
        }
        load
    }

    /// Ends it: what was begun is waited for, each tenant is read through `replica`, and the followers hear all of it.
    pub(crate) async fn end(self, fleet: &Fleet, replica: &'static str) -> Outcome {
        let _ = self.stop.send(true);
        let mut written = Vec::new();
        for writer in self.writers {
            written.push(within(PATIENCE * 2, "a writer's last write", writer).await.unwrap());
        }
        let mut histories = BTreeMap::new();
        for writer in &written {
            histories.insert(writer.tenant.clone(), contents(fleet, replica, writer).await);
        }
        let mut followed = Vec::new();
        for (tenant, tell, follower) in self.followers {
            let _ = tell.send(Some(histories[&tenant].len()));
            followed.push(within(PATIENCE, "a follower's last event", follower).await.unwrap());
        }
        Outcome { written, followed, histories }
    }
}

/// All that there is of a writer's tenant.
async fn contents(fleet: &Fleet, replica: &'static str, writer: &Written) -> Vec<String> {
    if writer.kind != Kind::Sql {
        return fleet.history(replica, &writer.tenant).await;
    }
    let url = format!("{}/query", clients::path(&writer.tenant));
    let body = json!({ "sql": "SELECT id FROM writes ORDER BY rowid" });
    let answer =
        fleet.door.send(|http, base| patient(http.post(format!("{base}{url}")).json(&body), PATIENCE));
    let answer = answer.await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    let rows: serde_json::Value = answer.json().await.unwrap();
    let rows = rows["rows"].as_array().unwrap().iter();
    rows.map(|row| row[0].as_str().unwrap().to_owned()).collect()
}

impl Outcome {
    /// Sends again what writers with keys were told is there, as they do who learn that a replica crashed; answers what there is then.
    pub(crate) async fn send_again(&mut self, fleet: &Fleet, replica: &'static str) {
        for written in &mut self.written {
            if written.kind == Kind::Unkeyed {
                continue;
            }
            let mut writer = Writer {
                door: fleet.door.clone(),
                recorder: Arc::clone(&fleet.recorder),
                every: Duration::ZERO,
                written: Written::new(written.tenant.clone(), written.kind),
            };
            writer.again(&written.acknowledged).await;
            let contents = contents(fleet, replica, written).await;
            self.histories.insert(written.tenant.clone(), contents);
        }
    }

    /// No client saw an error.
    pub(crate) fn assert_no_errors(&self) {
        for written in &self.written {
            assert!(
                written.errors.is_empty(),
                "{}, {:?}: {:?}",
                written.tenant,
                written.kind,
                written.errors
            );
        }
        for followed in &self.followed {
            assert!(followed.errors.is_empty(), "follower of {:?}: {:?}", followed.tenant, followed.errors);
            assert_eq!(followed.rewound, 0, "follower of {:?}", followed.tenant);
        }
    }

    /// What these writers were told is there, once, and where order is kept in the order in which they wrote it.
    pub(crate) fn assert_all_there(&self, judged: impl Fn(&Written) -> bool, in_order: bool) {
        for written in self.written.iter().filter(|written| judged(written)) {
            let there = &self.histories[&written.tenant];
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for id in there {
                *counts.entry(id).or_default() += 1;
            }
            let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
            assert!(twice.is_empty(), "{}, {:?}: twice: {twice:?}", written.tenant, written.kind);
            let is_missing = |id: &&String| !counts.contains_key(id.as_str());
            let missing: Vec<_> = written.acknowledged.iter().filter(is_missing).collect();
            assert!(missing.is_empty(), "{}, {:?}: lost: {missing:?}", written.tenant, written.kind);
            let is_unasked =
                |id: &&String| !written.acknowledged.contains(id) && !written.unknown.contains(*id);
            let unasked: Vec<_> = there.iter().filter(is_unasked).collect();
            assert!(unasked.is_empty(), "{}, {:?}: not asked for: {unasked:?}", written.tenant, written.kind);
            if in_order {
                let known: Vec<_> = there.iter().filter(|id| written.acknowledged.contains(id)).collect();
                let wrote: Vec<_> = written.acknowledged.iter().collect();
                assert_eq!(known, wrote, "{}, {:?}: the order", written.tenant, written.kind);
            }
        }
    }

    /// Each follower heard all of its tenant's events, in their order and once.
    pub(crate) fn assert_followed(&self) {
        for followed in &self.followed {
            let tenant = followed.tenant.as_ref().unwrap();
            assert!(followed.wrong.is_empty(), "follower of {tenant}: {:?}", followed.wrong);
            assert_eq!(followed.ids, self.histories[tenant], "follower of {tenant}");
        }
    }

    /// The ground rule held, and nothing that an older tenure acknowledged was asked for after a younger one had answered.
    pub(crate) fn assert_no_breach(&self, fleet: &Fleet) {
        for written in &self.written {
            let breaches = fleet.recorder.breaches(&written.tenant);
            assert!(breaches.is_empty(), "{}: {breaches:?}", written.tenant);
        }
    }

    /// How long after `from` each of these tenants was first written to in an epoch above the one that it had.
    pub(crate) fn served_again(
        &self,
        from: Moment,
        epochs: &BTreeMap<LeaseKey, u64>,
    ) -> Vec<(LeaseKey, Duration)> {
        let first = |written: &Written| {
            let before = *epochs.get(&written.tenant)?;
            let (_, at) = written.epochs.iter().find(|(epoch, at)| *epoch > before && *at > from)?;
            Some((written.tenant.clone(), at.since(from)))
        };
        self.written.iter().filter_map(first).collect()
    }

    /// What went wrong for clients, each kind once.
    pub(crate) fn errors(&self) -> Vec<String> {
        let written = self.written.iter().flat_map(|written| written.errors.keys());
        let followed = self.followed.iter().flat_map(|followed| followed.errors.keys());
        let mut errors: Vec<String> = written.chain(followed).cloned().collect();
        errors.sort_unstable();
        errors.dedup();
        errors
    }

    /// The account of it.
    pub(crate) fn report(&self) -> Report {
        let mut report = Report::default();
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for written in &self.written {
            report.requests += written.requests;
            report.acknowledged += u64::try_from(written.acknowledged.len()).unwrap();
            report.latencies.extend(&written.latencies);
            report.longest = report.longest.max(written.longest);
            for (error, count) in &written.errors {
                *errors.entry(error.clone()).or_default() += count;
            }
        }
        for followed in &self.followed {
            for (error, count) in &followed.errors {
                *errors.entry(error.clone()).or_default() += count;
            }
        }
        report.errors = errors.into_iter().collect();
        let moved: u64 = self.followed.iter().map(|followed| followed.moved).sum();
        let followers = self.followed.len();
        if followers > 0 {
            report.note(format!("{followers} followers, told `moved` {moved} times"))
        } else {
            report
        }
    }
}

/// Now.
pub(crate) fn now() -> Moment {
    SystemClock.now()
}
