//! What this replica knows of the fleet: the replicas' rows, read at most a moment ago, and what their answers have said since.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, HeaderName};
use leasehold_lease::ReplicaRow;
use leasehold_types::Moment;
use uuid::Uuid;

use super::fleet::{Fleet, Member};
use crate::{app::App, forward::Owner, stage::Stage};

/// In an answer to another replica: how many tenants the one that answers has.
pub(crate) const OPEN_TENANTS: HeaderName = HeaderName::from_static("leasehold-open-tenants");

/// How long what was read is used before it is read again.
const FRESH: Duration = Duration::from_millis(250);
/// After how many ttls out of sight a process that comes back counts as one that came. A shorter absence is a lease store that did not answer.
const ABSENT_TTLS_MAX: u32 = 10;

/// A process of a replica.
type Process = (String, Uuid);

/// The fleet as it was read last.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    known: Mutex<Known>,
    /// Held while the rows are read: who comes meanwhile waits for that one answer.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// When the rows were last asked for.
    tried_at: Option<Moment>,
    /// When they last were read.
    read_at: Option<Moment>,
    /// The other replicas that take tenants.
    others: Vec<Seen>,
    /// Since when each process is there, and when it was last seen. Only those of the last reads, so it is as long as the fleet.
    processes: HashMap<Process, (Moment, Moment)>,
    /// When the others were last not the same as the time before, and how often that was.
    changed_at: Option<Moment>,
    changes: u64,
    /// What a replica's answers have said since, by the moment. As long as the fleet.
    heard: HashMap<String, (Moment, u64)>,
}

/// Another replica that takes tenants.
#[derive(Debug)]
struct Seen {
    process: Process,
    endpoint: String,
    /// How many tenants it had open, and when it said so.
    open: u64,
    said_at: Moment,
}

/// The fleet, and for how long it has been made of the same replicas.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) fleet: Fleet,
    pub(crate) same_for: Duration,
    /// Counts the changes of who is in it.
    pub(crate) changes: u64,
}

impl Survey {
    /// The fleet as it is now, this replica with it where it takes tenants. `None`: the lease store has not told for a ttl who is in it.
    pub(crate) async fn look(&self, app: &App) -> Option<Look> {
        self.refresh(app).await;
        let now = app.clock.now();
        let known = self.lock();
        if known.read_at.is_none_or(|read_at| now.since(read_at) > app.config.ttl) {
            return None;
        }
        let mut members: Vec<Member> = known.others.iter().map(|seen| known.member_of(seen, now)).collect();
        if app.stage.get() == Stage::Serving {
            members.push(Member {
                replica: app.replica.to_string(),
                endpoint: app.endpoint.clone(),
                open: app.router.tenants() as u64,
                here_for: Duration::ZERO,
                is_this: true,
            });
        }
        let same_for = known.changed_at.map_or(Duration::ZERO, |changed_at| now.since(changed_at));
        Some(Look { fleet: Fleet::new(members, app.slack), same_for, changes: known.changes })
    }

    /// Notes what a replica's answer says of how much it has, and takes it out of the answer.
    pub(crate) fn heard_of(&self, app: &App, owner: &Owner, headers: &mut HeaderMap) {
        let said = headers.remove(OPEN_TENANTS);
        let Some(open) = said.and_then(|value| value.to_str().ok()?.parse::<u64>().ok()) else { return };
        let now = app.clock.now();
        let mut known = self.lock();
        if known.others.iter().any(|seen| seen.process.0 == owner.replica) {
            known.heard.insert(owner.replica.clone(), (now, open));
        }
    }

    async fn refresh(&self, app: &App) {
        let is_fresh = || {
            let tried_at = self.lock().tried_at;
            tried_at.is_some_and(|tried_at| app.clock.now().since(tried_at) < FRESH)
        };
        if is_fresh() {
            return;
        }
        let _reading = self.reading.lock().await;
        // Whoever was before has asked, with or without an answer.
        if is_fresh() {
            return;
        }
        let read = app.leases.replicas().await;
        let now = app.clock.now();
        let mut known = self.lock();
        known.tried_at = Some(now);
        match read {
            Ok(rows) => known.note(rows, app.replica.as_str(), app.config.ttl, now),
            Err(error) => tracing::warn!(%error, "the fleet could not be read"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // What is noted is made before it is put there.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, rows: Vec<ReplicaRow>, this: &str, ttl: Duration, now: Moment) {
        let others: Vec<Seen> = rows
            .into_iter()
            .filter(|row| row.seen_ago <= ttl && !row.announcement.draining)
            .filter(|row| row.announcement.replica.as_str() != this)
            .filter_map(|row| {
                let (said, seen_ago) = (row.announcement, row.seen_ago);
                Some(Seen {
                    process: (said.replica.to_string(), said.instance),
                    endpoint: said.endpoint.filter(|endpoint| Owner::can_be_reached(endpoint))?,
                    open: said.open_tenants,
                    said_at: now.minus(seen_ago),
                })
            })
            .collect();
        let mut before: Vec<&Process> = self.others.iter().map(|seen| &seen.process).collect();
        let mut after: Vec<&Process> = others.iter().map(|seen| &seen.process).collect();
        before.sort_unstable();
        after.sort_unstable();
        if before != after || self.changed_at.is_none() {
            (self.changed_at, self.changes) = (Some(now), self.changes + 1);
        }
        self.processes.retain(|_, (_, seen_at)| now.since(*seen_at) <= ttl * ABSENT_TTLS_MAX);
        for seen in &others {
            self.processes.entry(seen.process.clone()).or_insert((now, now)).1 = now;
        }
        self.heard.retain(|replica, _| others.iter().any(|seen| seen.process.0 == *replica));
        (self.read_at, self.others) = (Some(now), others);
    }

    fn member_of(&self, seen: &Seen, now: Moment) -> Member {
        let (replica, since) = (seen.process.0.clone(), self.processes.get(&seen.process));
        let open = match self.heard.get(&replica) {
            Some((heard_at, open)) if *heard_at > seen.said_at => *open,
            _ => seen.open,
        };
        let here_for = since.map_or(Duration::ZERO, |(since, _)| now.since(*since));
        Member { replica, endpoint: seen.endpoint.clone(), open, here_for, is_this: false }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_lease::Announcement;

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn at(secs: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(1_000 + secs))
    }

    fn row(replica: &str, process: u128, open_tenants: u64, seen_ago: u64) -> ReplicaRow {
        let announcement = Announcement {
            replica: replica.parse().unwrap(),
            instance: Uuid::from_u128(process),
            endpoint: Some(format!("http://{replica}:7400")),
            draining: false,
            open_tenants,
        };
        ReplicaRow { announcement, seen_ago: Duration::from_secs(seen_ago) }
    }

    fn members(known: &Known, now: Moment) -> Vec<(String, u64, u64)> {
        let members = known.others.iter().map(|seen| known.member_of(seen, now));
        members.map(|member| (member.replica, member.open, member.here_for.as_secs())).collect()
    }

    #[test]
    fn only_who_takes_tenants_is_in_it() {
        let mut known = Known::default();
        let mut draining = row("c", 3, 1, 0);
        draining.announcement.draining = true;
        let mut nowhere = row("d", 4, 1, 0);
        nowhere.announcement.endpoint = None;
        let mut otherwise = row("e", 5, 1, 0);
        otherwise.announcement.endpoint = Some("e:7400".to_owned());
        let rows =
            vec![row("a", 1, 1, 0), row("b", 2, 7, 10), draining, nowhere, otherwise, row("f", 6, 1, 11)];
        known.note(rows, "a", TTL, at(0));
        assert_eq!(members(&known, at(0)), [("b".to_owned(), 7, 0)]);
    }

    #[test]
    fn a_change_is_another_process_and_a_short_absence_is_nobody_who_came() {
        let mut known = Known::default();
        known.note(vec![row("b", 1, 0, 0)], "a", TTL, at(0));
        assert_eq!((known.changed_at, known.changes), (Some(at(0)), 1));
        known.note(vec![row("b", 1, 5, 0)], "a", TTL, at(9));
        assert_eq!((known.changed_at, known.changes), (Some(at(0)), 1), "how much it has is no change");
        known.note(vec![], "a", TTL, at(20));
        known.note(vec![row("b", 1, 5, 0)], "a", TTL, at(40));
        assert_eq!((known.changed_at, known.changes), (Some(at(40)), 3));
        assert_eq!(members(&known, at(50)), [("b".to_owned(), 5, 50)], "it has been there all the time");
        known.note(vec![row("b", 2, 5, 0)], "a", TTL, at(60));
        assert_eq!(members(&known, at(61)), [("b".to_owned(), 5, 1)], "a process that restarted came");
        known.note(vec![], "a", TTL, at(161));
        known.note(vec![row("b", 2, 5, 0)], "a", TTL, at(162));
        assert_eq!(members(&known, at(162)), [("b".to_owned(), 5, 0)], "so did one that was away for long");
    }

    #[test]
    fn the_later_word_counts() {
        let mut known = Known::default();
        known.note(vec![row("b", 1, 3, 2)], "a", TTL, at(10));
        known.heard.insert("b".to_owned(), (at(9), 8));
        assert_eq!(members(&known, at(10))[0].1, 8, "said at 8, heard at 9");
        known.note(vec![row("b", 1, 4, 1)], "a", TTL, at(11));
        assert_eq!(members(&known, at(11))[0].1, 4, "said at 10");
        known.note(vec![], "a", TTL, at(12));
        assert!(known.heard.is_empty());
    }
}
