//! Giving each replica its share, a few tenants at a time.

use std::{collections::HashMap, convert::Infallible, time::Duration};

use futures::future::join_all;
use leasehold_types::{LeaseKey, Moment};

use super::{
    counters::MoveOutcome,
    plan::{Move, Own, plan},
    survey::Look,
};
use crate::{
    app::{App, AppState},
    forward::{Owner, give},
    stage::Stage,
};

/// How often the shares are looked at, in parts of the ttl.
const LOOKS_PER_TTL: u32 = 3;
/// How long a replica may take to open a tenant that it is given; until then nobody opens it here.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// For how long nothing is given after a tenant was not opened by the replica that it was given to.
const QUIET: Duration = Duration::from_secs(60);
/// For how long a tenant that could not be handed off is left alone.
const REST: Duration = Duration::from_secs(5 * 60);

/// Looks at the shares for ever, and hands over what makes them fairer: once the fleet has been the same for a ttl, a few tenants at a time
/// and with a pause between (decision 0034). Nothing comes of it where there is no way to other replicas.
pub(crate) async fn keep_balanced(app: AppState) -> Infallible {
    if app.forwarding.is_none() || !app.config.placement.enabled {
        return std::future::pending().await;
    }
    let mut balance = Balance::default();
    loop {
        let has_moved = balance.step(&app).await;
        let wait = if has_moved {
            app.config.placement.moves_pause
        } else {
            app.entropy.jittered(app.config.ttl / LOOKS_PER_TTL)
        };
        app.timer.sleep(wait).await;
    }
}

/// What one look leaves for the next.
#[derive(Debug, Default)]
struct Balance {
    /// The change of the fleet after which nothing was left to be given to who came.
    settled_at: Option<u64>,
    /// The tenants that are left alone, and until when: none for longer than that, so there are never more than moves were.
    resting: HashMap<LeaseKey, Moment>,
    /// Until when nothing is given: somebody did not open what it was given, and more of that helps nobody.
    quiet_until: Option<Moment>,
}

impl Balance {
    /// One look, and the moves that come of it, performed side by side. Answers whether there were any.
    async fn step(&mut self, app: &AppState) -> bool {
        let Some(look) = app.survey.look(app).await else { return false };
        let counters = &app.metrics.placement;
        counters.fair_share.set(number(look.fleet.even_share()));
        counters.share_max.set(number(look.fleet.share_max()));
        let may_move = app.config.placement.rebalance
            && self.quiet_until.is_none_or(|until| app.clock.now() >= until)
            && app.stage.get() == Stage::Serving
            && look.same_for >= app.config.ttl;
        if !may_move {
            return false;
        }
        let moves = self.plan(app, &look);
        if moves.is_empty() {
            return false;
        }
        let outcomes = join_all(moves.iter().map(|one| perform(app, one))).await;
        let now = app.clock.now();
        for (one, outcome) in moves.into_iter().zip(outcomes) {
            match outcome {
                Some(MoveOutcome::Stayed) => _ = self.resting.insert(one.key, now.plus(REST)),
                Some(MoveOutcome::Unopened) => self.quiet_until = Some(now.plus(QUIET)),
                _ => {}
            }
        }
        true
    }

    fn plan(&mut self, app: &App, look: &Look) -> Vec<Move> {
        let joins = self.settled_at != Some(look.changes);
        let is_over = look.fleet.this().is_some_and(|this| this.open > look.fleet.share_max());
        if !joins && !is_over {
            return Vec::new();
        }
        let now = app.clock.now();
        self.resting.retain(|_, until| *until > now);
        // What is paused, or being handed over already, is not open here.
        let own: Vec<Own> = app
            .router
            .handles()
            .iter()
            .filter(|handle| handle.is_open() && !self.resting.contains_key(handle.key()))
            .map(|handle| Own {
                open_for: handle.open_for(),
                idle_for: handle.idle_for(),
                is_busy: handle.in_flight() > 0
                    || app.in_flight.of(handle.key()) > 0
                    || app.followers.of(handle.key()) > 0,
                key: handle.key().clone(),
            })
            .collect();
        let moves = plan(&look.fleet, own, app.config.placement.moves_max, joins);
        if moves.is_empty() {
            self.settled_at = Some(look.changes);
        } else {
            tracing::info!(
                moves = moves.len(),
                fair_share = look.fleet.even_share(),
                share_max = look.fleet.share_max(),
                open = look.fleet.this().map(|this| this.open),
                replicas = look.fleet.members().len(),
                "handing tenants over so that each replica has its share"
            );
        }
        moves
    }
}

/// Hands one over. Answers what came of it; `None`: it was gone already.
async fn perform(app: &AppState, one: &Move) -> Option<MoveOutcome> {
    app.router.handle_of(&one.key)?;
    let taker = Owner { replica: one.to.clone(), endpoint: one.endpoint.clone(), epoch: None };
    match give(app, &one.key, taker, one.cause, ANSWER_MAX).await {
        Ok(_) => Some(MoveOutcome::Moved),
        Err(not) => not.outcome,
    }
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
