//! Tenures with honest clocks: the transition function drives the plans, and what it promises to callers is judged.
//!
//! Leases are taken once they have run out, deadlines are asked before every acknowledgement, renewals are sent, granted and
//! answered at different times. Time is counted as what is left, so that the states do not grow with it.

use std::sync::OnceLock;

use leasehold_snapshot::plan::{Answer, Ask};
use leasehold_tenure::{Event, LeaseState, Phase, UploadFailure};
use leasehold_types::{FencedReason, Floor};
use stateright::{Model, Property};

use crate::{
    bounds::Bounds,
    intern::Interner,
    life::Life,
    member::{Aftermath, Member, TTL},
    milestone::Milestone,
    mutation::FleetMutation,
    rule::Rule,
    tables::byte,
    tenure::{Tenure, Work},
    world::Told,
};

const MEMBERS: usize = 3;

/// How far a fleet is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetBounds {
    /// How many tenures there are in all: 1 to 3.
    pub tenures: u8,
    /// How many writes each makes.
    pub writes: u8,
    /// How many uploads each begins.
    pub uploads: u8,
    /// How often anybody asks for a snapshot, a handoff, an abandon or a forget, in all.
    pub asks: u8,
    /// How many renewals are sent in all, besides the openings' own.
    pub renewals: u8,
    /// How often an upload or a forget fails for want of a store.
    pub failures: u8,
    /// Whether calls run while a handoff drains.
    pub working: bool,
    /// A deviation that is to be found.
    pub mutation: Option<FleetMutation>,
}

/// A state of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FleetState {
    world: u32,
    members: [u32; MEMBERS],
    acquired: u8,
    /// How many ticks the row still runs.
    remaining: u8,
    /// The epoch of the newest acknowledgement.
    newest: u8,
    asks: u8,
    renewals: u8,
    failures: u8,
    broken: Option<Rule>,
}

/// What happens next in a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetAction {
    /// Time passes.
    Tick,
    /// A free lease, or one that has run out, is taken.
    Acquire,
    /// Something happens to one of the tenures.
    Member(u8, Move),
}

/// What happens to a tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The next step of its opening.
    Open,
    /// The next step of its upload.
    Upload,
    /// The next step of its forget.
    Forget,
    /// The next step of its look at the store.
    Resume,
    /// The upload ends for want of a store.
    UploadFails,
    /// The forget ends for want of a store.
    ForgetFails,
    /// The lease is handed back.
    Release,
    /// A renewal is sent and executed.
    Renew,
    /// Its answer comes.
    Renewed,
    /// The deadline is noticed.
    Lapse,
    /// A write is acknowledged.
    Write,
    /// A call begins.
    Begin,
    /// It ends.
    End,
    /// It did not end in time.
    TimeOut,
    /// The opening is to stop.
    AskStop,
    /// Somebody asks for a snapshot.
    AskSnapshot,
    /// Somebody asks for a handoff.
    AskHandoff,
    /// Somebody asks for an abandon.
    AskAbandon,
    /// Somebody asks for a forget.
    AskForget,
}

/// A fleet with everything that its states have in common.
#[derive(Debug)]
pub struct Fleet {
    bounds: FleetBounds,
    life: Life,
    members: Interner<Option<Member>>,
    first_broken: OnceLock<FleetState>,
}

impl Fleet {
    /// All lives of a fleet within `bounds`.
    #[must_use]
    pub fn new(bounds: FleetBounds) -> Self {
        assert!((1..=MEMBERS).contains(&usize::from(bounds.tenures)), "a state has room for so many tenures");
        let plans = Bounds {
            tenures: bounds.tenures,
            publishes: bounds.uploads,
            resumes: u8::MAX,
            forgets: 1,
            honest: true,
            ..Bounds::SMALLEST
        };
        Self { bounds, life: Life::new(plans), members: Interner::default(), first_broken: OnceLock::new() }
    }

    /// The rule that a state breaks.
    #[must_use]
    pub const fn broken(state: &FleetState) -> Option<Rule> {
        state.broken
    }

    /// How many different states of the stores, and of a single tenure, were met.
    #[must_use]
    pub fn met(&self) -> (usize, usize) {
        (self.life.met().0, self.members.len())
    }

    /// What happened somewhere.
    #[must_use]
    pub fn milestones(&self) -> Vec<Milestone> {
        self.life.milestones()
    }

    fn member(&self, state: &FleetState, who: usize) -> Option<Member> {
        self.members.value(state.members[who]).as_ref().clone()
    }

    /// What can happen to a tenure.
    fn moves(&self, state: &FleetState, member: &Member, moves: &mut Vec<Move>) {
        let machine = member.machine;
        for (work, step) in [
            (Work::Open, Move::Open),
            (Work::Upload, Move::Upload),
            (Work::Forget, Move::Forget),
            (Work::Resume, Move::Resume),
        ] {
            moves.extend(member.plans.asks(work).map(|_| step));
        }
        if state.failures > 0 {
            moves.extend(member.plans.asks(Work::Upload).map(|_| Move::UploadFails));
            moves.extend(member.plans.asks(Work::Forget).map(|_| Move::ForgetFails));
        }
        moves.extend(member.releasing.map(|_| Move::Release));
        if member.is_over() {
            return;
        }
        if member.renewal.is_some() {
            moves.push(Move::Renewed);
        } else if state.renewals > 0 && machine.renews() {
            moves.push(Move::Renew);
        }
        if machine.phase == Phase::Opening {
            if state.asks > 0 {
                moves.push(Move::AskStop);
            }
            return;
        }
        if member.left == 0 && machine.lease == LeaseState::Held && machine.renews() {
            moves.push(Move::Lapse);
        }
        if member.writes > 0 && self.acknowledges(member) {
            moves.push(Move::Write);
        }
        if self.bounds.working && !member.working && member.lets_in() {
            moves.push(Move::Begin);
        }
        if member.working {
            moves.push(Move::End);
            if machine.phase == Phase::Draining {
                moves.push(Move::TimeOut);
            }
        }
        if state.asks > 0 {
            moves.extend([Move::AskSnapshot, Move::AskHandoff, Move::AskAbandon, Move::AskForget]);
        }
    }

    fn step(&self, last: &FleetState, who: usize, what: Move) -> Option<FleetState> {
        let mut next = *last;
        let mut member = self.member(last, who)?;
        if let Err(rule) = self.happens(&mut next, who, &mut member, what) {
            next.broken = Some(rule);
        }
        // What is over and has nothing under way is like everything that is over.
        let rests = member.is_over()
            && [Work::Upload, Work::Forget].iter().all(|work| member.plans.asks(*work).is_none());
        next.members[who] = self.members.number((!rests).then_some(member));
        Some(self.judged(next))
    }

    fn acknowledges(&self, member: &Member) -> bool {
        let unasked = self.bounds.mutation == Some(FleetMutation::DeadlineUnasked);
        member.acknowledges() || (unasked && member.machine.refusal().is_none())
    }

    fn judged(&self, mut next: FleetState) -> FleetState {
        let members = (0..MEMBERS).filter_map(|who| self.member(&next, who));
        let acknowledge = members.filter(|member| self.acknowledges(member));
        if acknowledge.count() > 1 {
            next.broken = next.broken.or(Some(Rule::TwoAcknowledge));
        }
        next
    }

    fn happens(
        &self,
        next: &mut FleetState,
        who: usize,
        member: &mut Member,
        what: Move,
    ) -> Result<(), Rule> {
        match what {
            Move::Open => self.open(next, who, member),
            Move::Upload => self.upload(next, who, member),
            Move::Forget => self.forget(next, who, member),
            Move::Resume => self.resume(next, who, member),
            Move::UploadFails => {
                next.failures -= 1;
                member.plans = member.plans.without(Work::Upload);
                let failure = UploadFailure::Store;
                self.feed(next, member, Event::UploadFailed { failure, dirty: member.dirty() }, 0)
            }
            Move::ForgetFails => {
                next.failures -= 1;
                member.plans = member.plans.without(Work::Forget);
                self.feed(next, member, Event::ForgetFailed { superseded: None }, 0)
            }
            Move::Release => {
                let Some(flushed) = member.releasing.take() else { return Ok(()) };
                if let Some(claim) = &member.claim {
                    let (world, mine) = self.life.released(next.world, claim);
                    next.world = world;
                    next.remaining = if mine { 0 } else { next.remaining };
                }
                self.feed(next, member, Event::ReleaseEnded { flushed }, 0)
            }
            Move::Renew => {
                next.renewals -= 1;
                let mine = member.claim.as_ref().is_some_and(|claim| self.life.is_of(next.world, claim));
                if mine {
                    next.remaining = TTL;
                }
                member.renewal = Some((0, mine));
                Ok(())
            }
            Move::Renewed => {
                let Some((age, granted)) = member.renewal.take() else { return Ok(()) };
                if !granted {
                    return self.feed(next, member, Event::RenewRefused, 0);
                }
                let astray = self.bounds.mutation == Some(FleetMutation::DeadlineFromAnswer);
                let age = if astray { 0 } else { age };
                member.granted = member.granted.min(age);
                let event = if member.left > 0 { Event::Renewed } else { Event::RenewedLate };
                self.feed(next, member, event, age)
            }
            Move::Lapse => self.feed(next, member, Event::DeadlinePassed, 0),
            Move::Write => {
                member.writes -= 1;
                let write = byte(who as u64 + 1) * 16 + member.writes;
                member.plans = member.plans.written(write);
                let epoch = member.claim.as_ref().map_or(0, |claim| byte(claim.epoch.get()));
                if epoch < next.newest {
                    return Err(Rule::TwoAcknowledge);
                }
                next.newest = epoch;
                Ok(())
            }
            Move::Begin => {
                member.working = true;
                Ok(())
            }
            Move::End => {
                member.working = false;
                self.drained(next, member)
            }
            Move::TimeOut => self.feed(next, member, Event::DrainTimedOut, 0),
            Move::AskStop => self.ask(next, member, Event::StopAsked),
            Move::AskSnapshot => {
                let dirty = member.dirty();
                self.ask(next, member, Event::SnapshotAsked { dirty })
            }
            Move::AskHandoff => self.ask(next, member, Event::HandoffAsked),
            Move::AskAbandon => self.ask(next, member, Event::AbandonAsked),
            Move::AskForget => self.ask(next, member, Event::ForgetAsked),
        }
    }

    /// What the driver does before it feeds what a caller asks.
    fn ask(&self, next: &mut FleetState, member: &mut Member, event: Event) -> Result<(), Rule> {
        next.asks -= 1;
        if member.machine.lease == LeaseState::Held && member.left == 0 {
            self.feed(next, member, Event::DeadlinePassed, 0)?;
        }
        self.feed(next, member, event, 0)
    }

    fn drained(&self, next: &mut FleetState, member: &mut Member) -> Result<(), Rule> {
        if member.machine.phase == Phase::Draining && !member.working {
            let dirty = member.dirty() && self.bounds.mutation != Some(FleetMutation::DirtyOverlooked);
            return self.feed(next, member, Event::Drained { dirty }, 0);
        }
        Ok(())
    }

    /// Feeds an event, and begins what it leads to.
    fn feed(&self, next: &mut FleetState, member: &mut Member, event: Event, sent: u8) -> Result<(), Rule> {
        let mut after = Aftermath::default();
        member.feed(event, sent, &mut after)?;
        if after.handed_off && !self.life.has(next.world, member.plans.ledger()) {
            return Err(Rule::HandoffLost);
        }
        if after.resume
            && member.plans.asks(Work::Resume).is_none()
            && let Some(plans) = self.life.begun(next.world, &member.plans, Work::Resume)
        {
            member.plans = plans;
        }
        if after.forget {
            let begun = self.life.begun(next.world, &member.plans, Work::Forget);
            member.plans = begun.ok_or(Rule::Transition)?;
        }
        if after.upload {
            if let Some(plans) = self.life.begun(next.world, &member.plans, Work::Upload) {
                member.plans = plans;
            } else {
                // One more than the bounds have fails for want of a store.
                let (failure, dirty) = (UploadFailure::Store, member.dirty());
                self.feed(next, member, Event::UploadFailed { failure, dirty }, 0)?;
            }
        }
        self.drained(next, member)
    }

    /// One step of a plan: performed, fed, judged.
    fn advance(
        &self,
        next: &mut FleetState,
        who: usize,
        member: &mut Member,
        work: Work,
    ) -> Result<(Option<Ask>, Option<Told>), Rule> {
        let asked = member.plans.asks(work);
        if matches!(asked, Some(Ask::Renew(_))) {
            // The opening's own renewal, by the row.
            if member.plans.opening_claim().is_some_and(|claim| self.life.is_of(next.world, claim)) {
                next.remaining = TTL;
                member.granted = 0;
            }
        }
        let held = matches!(asked, Some(Ask::Held))
            .then(|| Answer::Held(if member.left > 0 { Ok(()) } else { Err(FencedReason::Lapsed) }));
        let image = member.plans.image_writes();
        let (world, plans, told, broken) =
            self.life.advance(next.world, byte(who as u64 + 1), &member.plans, work, held);
        next.world = world;
        member.plans = plans;
        if let Some(Told::Acknowledged { .. }) = told {
            member.published = member.published.max(image);
        }
        broken.map_or(Ok((asked, told)), Err)
    }

    fn open(&self, next: &mut FleetState, who: usize, member: &mut Member) -> Result<(), Rule> {
        if member.machine.phase != Phase::Opening {
            // It sees at its next step that it should stop.
            member.claim = member.plans.opening_claim().cloned().or(member.claim.take());
            member.plans = member.plans.without(Work::Open);
            return self.feed(next, member, Event::OpenFailed { acquired: true }, 0);
        }
        let (_, told) = self.advance(next, who, member, Work::Open)?;
        match told {
            None => {
                member.claim = member.plans.opening_claim().cloned().or(member.claim.take());
                Ok(())
            }
            Some(Told::Began { .. }) => {
                member.claim = member.plans.claim().cloned();
                member.published = byte(member.plans.ledger().len() as u64);
                member.left = member.left.max((TTL - crate::member::MARGIN).saturating_sub(member.granted));
                self.feed(next, member, Event::Opened, 0)
            }
            Some(_) => self.feed(next, member, Event::OpenFailed { acquired: true }, 0),
        }
    }

    fn upload(&self, next: &mut FleetState, who: usize, member: &mut Member) -> Result<(), Rule> {
        let (_, told) = self.advance(next, who, member, Work::Upload)?;
        let dirty = member.dirty();
        match told {
            None => Ok(()),
            Some(Told::Fenced(FencedReason::Lapsed)) => {
                let failure = UploadFailure::Lapsed;
                self.feed(next, member, Event::UploadFailed { failure, dirty }, 0)
            }
            Some(Told::Fenced(reason)) => {
                let failure = UploadFailure::Superseded(reason);
                self.feed(next, member, Event::UploadFailed { failure, dirty }, 0)
            }
            Some(_) => self.feed(next, member, Event::UploadPublished { dirty }, 0),
        }
    }

    fn forget(&self, next: &mut FleetState, who: usize, member: &mut Member) -> Result<(), Rule> {
        let (asked, told) = self.advance(next, who, member, Work::Forget)?;
        match (asked, told) {
            (Some(Ask::RaiseFloor(_)), None) => self.feed(next, member, Event::FloorRaised, 0),
            (_, None) => Ok(()),
            (_, Some(Told::Forgotten { .. })) => self.feed(next, member, Event::Forgotten, 0),
            (_, Some(Told::Fenced(reason))) => {
                self.feed(next, member, Event::ForgetFailed { superseded: Some(reason) }, 0)
            }
            (_, Some(_)) => Err(Rule::NotThrough),
        }
    }

    fn resume(&self, next: &mut FleetState, who: usize, member: &mut Member) -> Result<(), Rule> {
        let (_, told) = self.advance(next, who, member, Work::Resume)?;
        let sent = member.granted;
        match told {
            None => Ok(()),
            Some(Told::Fenced(reason)) => self.feed(next, member, Event::StoreDisagrees(reason), 0),
            Some(_) => self.feed(next, member, Event::StoreAgrees, sent),
        }
    }

    fn acquire(&self, last: &FleetState) -> FleetState {
        let mut next = *last;
        next.acquired += 1;
        next.remaining = TTL;
        let (world, claim, floor) = self.life.acquired(last.world, next.acquired);
        next.world = world;
        let floor = Floor::new(floor.into()).expect("a floor");
        let plans = Tenure::opening(next.acquired, claim.clone(), floor, self.life.bounds());
        let member = Member::opening(plans, claim, self.bounds.writes);
        next.members[usize::from(next.acquired - 1)] = self.members.number(Some(member));
        self.judged(next)
    }

    fn tick(&self, last: &FleetState) -> FleetState {
        let mut next = *last;
        next.remaining = last.remaining.saturating_sub(1);
        for who in 0..MEMBERS {
            if let Some(mut member) = self.member(last, who) {
                member.tick();
                next.members[who] = self.members.number(Some(member));
            }
        }
        next
    }

    fn keeps(&self, state: &FleetState) -> bool {
        state.broken.is_none() || self.first_broken.get_or_init(|| *state) != state
    }

    /// An action, for people.
    #[must_use]
    pub fn told(&self, state: &FleetState, action: FleetAction) -> String {
        match action {
            FleetAction::Tick => "time passes".to_owned(),
            FleetAction::Acquire => format!("r{} takes the lease", state.acquired + 1),
            FleetAction::Member(who, what) => {
                let phase = self.member(state, who.into()).map(|member| member.machine);
                let phase = phase.map_or_else(String::new, |machine| {
                    format!(" ({:?}, {:?})", machine.phase, machine.lease)
                });
                format!("r{}{phase}: {what:?}", who + 1)
            }
        }
    }
}

impl Model for Fleet {
    type State = FleetState;
    type Action = FleetAction;

    fn init_states(&self) -> Vec<FleetState> {
        vec![FleetState {
            world: self.life.first_world(),
            members: [self.members.number(None); MEMBERS],
            acquired: 0,
            remaining: 0,
            newest: 0,
            asks: self.bounds.asks,
            renewals: self.bounds.renewals,
            failures: self.bounds.failures,
            broken: None,
        }]
    }

    fn actions(&self, state: &FleetState, actions: &mut Vec<FleetAction>) {
        if state.broken.is_some() {
            return;
        }
        let mut time_matters = state.remaining > 0;
        let mut moves = Vec::new();
        for who in 0..MEMBERS {
            if let Some(member) = self.member(state, who) {
                time_matters |= member.left > 0 || member.renewal.is_some();
                moves.clear();
                self.moves(state, &member, &mut moves);
                actions.extend(moves.iter().map(|what| FleetAction::Member(byte(who as u64), *what)));
            }
        }
        if state.acquired < self.bounds.tenures && (state.remaining == 0 || self.life.is_free(state.world)) {
            actions.push(FleetAction::Acquire);
        }
        if time_matters {
            actions.push(FleetAction::Tick);
        }
    }

    fn next_state(&self, last: &FleetState, action: FleetAction) -> Option<FleetState> {
        Some(match action {
            FleetAction::Tick => self.tick(last),
            FleetAction::Acquire => self.acquire(last),
            FleetAction::Member(who, what) => return self.step(last, who.into(), what),
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every rule holds", Self::keeps)]
    }
}
