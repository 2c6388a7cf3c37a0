//! Where a client's request goes: to whoever holds its tenant, else to where the tenant belongs.

use leasehold_lease::LeaseRow;

use super::{Owner, errand::Errand, opens::Opens};
use crate::stage::Stage;

/// How many other replicas are asked to open a tenant that nobody has, before this one does.
const PLACES_MAX: usize = 2;

impl Errand<'_> {
    /// Another replica that is to be asked; `None`: this one answers.
    pub(super) async fn whereabouts(&mut self) -> Option<Owner> {
        if self.app.router.handle_of(&self.key).is_some() {
            return None;
        }
        let known = self.forwarding.owners.get(&self.key);
        self.app.metrics.forward.owner_known(known.is_some());
        if known.is_some() {
            return known;
        }
        let leaves = self.app.stage.get() == Stage::Draining;
        let fits = self.kept.fits();
        let place = if leaves || fits { self.place(leaves).await } else { None };
        // Where it belongs here, opening it says who holds it. A body that cannot be sent twice is sent to the right one at once.
        if !leaves && fits && place.is_none() {
            return None;
        }
        let row = self.app.leases.read(&self.key).await.ok()?;
        let row_epoch = row.as_ref().map(|row| row.epoch);
        let opens = self.opens().opens(row.is_some(), row.as_ref().is_some_and(LeaseRow::is_forgotten));
        let is_there = row.as_ref().is_some_and(|row| !row.is_forgotten());
        match row.and_then(|row| row.owner).filter(|owner| !owner.remaining.is_zero()) {
            // What has not left yet is waited for here.
            Some(owner) if owner.replica == self.app.replica => None,
            Some(owner) => {
                let (replica, epoch) = (owner.replica.to_string(), row_epoch);
                let owner = owner.endpoint.map(|endpoint| Owner { replica, endpoint, epoch });
                owner.filter(Owner::is_reachable)
            }
            // One that leaves opens nothing and acquires nothing, a forget neither.
            None if leaves => place.filter(|_| is_there || opens),
            None => place.filter(|_| opens),
        }
    }

    /// What the request does about a tenant that nobody has open; of a route that is not known, nothing.
    fn opens(&self) -> Opens {
        Opens::of(&self.parts.method, &self.route).unwrap_or(Opens::Nothing)
    }

    /// Another replica that is to open the tenant if nobody has it; `None`: this one, or nobody.
    async fn place(&mut self, leaves: bool) -> Option<Owner> {
        let is_asked = self.app.config.placement.enabled
            && self.opens() != Opens::Nothing
            && self.passed_over.len() < PLACES_MAX;
        if !leaves && !is_asked {
            return None;
        }
        let look = self.app.survey.look(self.app).await?;
        let place = look.fleet.place(&self.key, &self.passed_over);
        if place.is_none() {
            // One that leaves has nobody but the others: they are all asked anew.
            self.passed_over.clear();
        }
        place.filter(|member| !member.is_this).map(|member| Owner {
            replica: member.replica.clone(),
            endpoint: member.endpoint.clone(),
            epoch: None,
        })
    }
}
