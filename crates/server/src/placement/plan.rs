//! Which tenants a replica hands over, to whom, so that everybody has a share.
//!
//! A tenant goes for one of two reasons. It belongs to a replica that came after the tenant was opened here; or this replica has more than the
//! bound. Both look at what they change: a tenant that went for the first reason was opened after everybody came, and one that went for the
//! second was taken by a replica below its even share, which is then at most at it. So, however often it is planned, while the fleet
//! stays the same no tenant goes twice and an end comes after as many moves as there are tenants at the most.

use std::{cmp::Reverse, time::Duration};

use leasehold_types::LeaseKey;

use super::{
    counters::Cause,
    fleet::{Fleet, Member, best_of},
};

/// A tenant that is open here and could go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) key: LeaseKey,
    pub(crate) open_for: Duration,
    pub(crate) idle_for: Duration,
    /// Whether somebody works with it, or follows it, right now.
    pub(crate) is_busy: bool,
}

/// One tenant that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) key: LeaseKey,
    pub(crate) to: String,
    pub(crate) endpoint: String,
    pub(crate) cause: Cause,
}

/// The next moves, `moves_max` at the most, the idlest tenants first and those in use last. `joins`: whether a replica may have come for whom
/// tenants are still here.
pub(crate) fn plan(fleet: &Fleet, mut own: Vec<Own>, moves_max: usize, joins: bool) -> Vec<Move> {
    let Some(this) = fleet.this() else { return Vec::new() };
    let (share_max, even) = (fleet.share_max(), fleet.even_share());
    let is_over = this.open > share_max;
    if fleet.members().len() < 2 || moves_max == 0 || !(joins || is_over) {
        return Vec::new();
    }
    own.sort_by(|one, other| {
        (one.is_busy, Reverse(one.idle_for), &one.key).cmp(&(
            other.is_busy,
            Reverse(other.idle_for),
            &other.key,
        ))
    });
    let mut planning = Planning { here: this.open, others: others_of(fleet), moves: Vec::new() };
    if joins {
        own.retain(|tenant| {
            if planning.moves.len() == moves_max {
                return true;
            }
            let to = planning.newcomer_of(tenant, this, share_max);
            to.is_none_or(|to| {
                planning.take(tenant, &to, Cause::Join);
                false
            })
        });
    }
    for tenant in &own {
        if planning.here <= share_max || planning.moves.len() == moves_max {
            break;
        }
        // Below its even share and not below the bound: what others move to it at the same time has room too.
        let room = planning.others.iter().filter(|member| member.open < even);
        let Some(to) = best_of(&tenant.key, room).map(|member| member.replica.clone()) else { break };
        planning.take(tenant, &to, Cause::Share);
    }
    planning.moves
}

/// The shares as they will be.
struct Planning {
    here: u64,
    others: Vec<Member>,
    moves: Vec<Move>,
}

impl Planning {
    /// The replica that came after the tenant was opened here and that it belongs to, this one among those it may belong to.
    fn newcomer_of(&self, tenant: &Own, this: &Member, share_max: u64) -> Option<String> {
        if !self.others.iter().any(|member| member.here_for < tenant.open_for) {
            return None;
        }
        // It has its room here already.
        let stays = (self.here <= share_max).then_some(this);
        let room = self.others.iter().filter(|member| member.open < share_max);
        best_of(&tenant.key, room.chain(stays))
            .filter(|member| !member.is_this && member.here_for < tenant.open_for)
            .map(|member| member.replica.clone())
    }

    fn take(&mut self, tenant: &Own, to: &str, cause: Cause) {
        let Some(member) = self.others.iter_mut().find(|member| member.replica == to) else { return };
        member.open += 1;
        self.here = self.here.saturating_sub(1);
        let (to, endpoint) = (member.replica.clone(), member.endpoint.clone());
        self.moves.push(Move { key: tenant.key.clone(), to, endpoint, cause });
    }
}

fn others_of(fleet: &Fleet) -> Vec<Member> {
    fleet.members().iter().filter(|member| !member.is_this).cloned().collect()
}

#[cfg(test)]
mod tests;
