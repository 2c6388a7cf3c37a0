//! All lives of one tenant within bounds, as a state machine that a checker explores.

mod telling;

use std::sync::{Arc, OnceLock};

use leasehold_lease::Claim;
use leasehold_snapshot::plan::{Answer, Ask};
use leasehold_types::{FencedReason, Floor};
use stateright::{Model, Property};

use crate::{
    bounds::Bounds,
    intern::{Interner, Memo},
    milestone::{Milestone, Milestones},
    mutation::Mutation,
    rule::Rule,
    tables::{Ledger, Tables, byte},
    tenure::{Tenure, Work},
    world::{Deed, Told, World},
};

const ACTORS: usize = Bounds::TENURES_MAX as usize + 1;

/// The actor that looks again at forgotten tenants.
const HOUSEKEEPER: usize = 0;

/// How many steps an opener that nobody contends with takes at the most.
const STEPS_ALONE_MAX: u32 = 64;

/// A state: numbers of values that the [`Life`] keeps, and what is left of the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    world: u32,
    /// The housekeeper, then the tenures in the order in which they were acquired.
    actors: [u32; ACTORS],
    acquired: u8,
    forgets: u8,
    rechecks: u8,
    lost: u8,
    late: u8,
    rewinds: u8,
    broken: Option<Rule>,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A new tenure takes the row, whoever has it.
    Acquire,
    /// The same, to forget the tenant.
    AcquireToForget,
    /// A forgotten tenant is looked at again.
    Recheck,
    /// The row falls back to an earlier state.
    FallBack(u8),
    /// A put is executed after its caller saw an error.
    Land(u8),
    /// An actor's next step of one kind of work.
    Do(Doing, u8, WorkKind),
}

/// How a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Executed and answered.
    Step,
    /// Executed; the answer is lost, and the same is asked again.
    Lose,
    /// The caller sees an error; executed later, or never.
    Defer,
    /// The lease store does not answer.
    Silent,
    /// Not at all: the upload is given up.
    GiveUp,
    /// The first so many names of a listing.
    Page(u8),
    /// One object of the epoch goes and no more, without an answer.
    DeleteOne(u8),
}

/// Opaque outside: which of an actor's plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkKind(Work);

/// What an actor can do, as far as the stores have no say in it.
#[derive(Clone, Copy, Debug)]
struct Ready {
    work: Work,
    kind: Kind,
    begins_resume: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    List,
    Row,
    Put,
    Change,
    DeleteEpoch,
}

/// A tenure after an answer, what it came to, and the ledger that it says it published.
type Fed = (u32, Option<Told>, Option<u32>);

/// The stores, the tenure, what it came to, and the ledger that it says it published.
type ToNote = (u32, u8, Told, Option<u32>);

/// One configuration with everything that its states have in common.
#[derive(Debug)]
pub struct Life {
    bounds: Bounds,
    tables: Tables,
    worlds: Interner<World>,
    tenures: Interner<Tenure>,
    deeds: Interner<Deed>,
    answers: Interner<Answer>,
    ledgers: Interner<Ledger>,
    ready: Memo<u32, Arc<[Ready]>>,
    begun: Memo<(u32, Work, bool), Option<(u32, u32)>>,
    performed: Memo<(u32, u32), (u32, u32)>,
    fed: Memo<(u32, Work, u32), Fed>,
    noted: Memo<ToNote, (u32, Option<Rule>)>,
    alone: Memo<u32, Option<Rule>>,
    milestones: Milestones,
    /// The first state that was seen to break a rule: the only one that is told, since it lies nearest.
    first_broken: OnceLock<State>,
}

impl Life {
    /// All lives within `bounds`.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        assert!((1..=Bounds::TENURES_MAX).contains(&bounds.tenures), "a state has room for so many tenures");
        Self {
            bounds,
            tables: Tables::new(),
            worlds: Interner::default(),
            tenures: Interner::default(),
            deeds: Interner::default(),
            answers: Interner::default(),
            ledgers: Interner::default(),
            ready: Memo::default(),
            begun: Memo::default(),
            performed: Memo::default(),
            fed: Memo::default(),
            noted: Memo::default(),
            alone: Memo::default(),
            milestones: Milestones::default(),
            first_broken: OnceLock::new(),
        }
    }

    /// The bounds.
    #[must_use]
    pub const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How many different states of the stores, and of a single tenure, were met.
    #[must_use]
    pub fn met(&self) -> (usize, usize) {
        (self.worlds.len(), self.tenures.len())
    }

    /// What happened somewhere.
    #[must_use]
    pub fn milestones(&self) -> Vec<Milestone> {
        self.milestones.seen()
    }

    fn changed(&self, world: u32, change: impl FnOnce(&mut World)) -> u32 {
        let mut world = World::clone(&self.worlds.value(world));
        change(&mut world);
        self.worlds.number(world)
    }

    /// What this actor can do.
    fn ready(&self, actor: u32) -> Arc<[Ready]> {
        self.ready.get(actor, |actor| {
            let tenure = self.tenures.value(*actor);
            let of = |work: Work| {
                let with = tenure.with(work, &self.tables, &self.bounds, false)?;
                let kind = match with.asks(work)? {
                    Ask::ReadFloors | Ask::Get(_) | Ask::Fetch(_) | Ask::Renew(_) | Ask::Held => Kind::Read,
                    Ask::List => Kind::List,
                    Ask::ReadRow => Kind::Row,
                    Ask::Put { .. } | Ask::Upload(_) => Kind::Put,
                    Ask::Advance { .. } | Ask::RaiseFloor(_) | Ask::Delete(_) => Kind::Change,
                    Ask::DeleteEpoch(_) => Kind::DeleteEpoch,
                };
                Some(Ready { work, kind, begins_resume: work == Work::Resume && tenure.begins_resume() })
            };
            Work::ALL.into_iter().filter_map(of).collect()
        })
    }

    /// The actor with `work` under way, and what it does next.
    fn begin(&self, world: u32, actor: u32, work: Work) -> Option<(u32, u32)> {
        let tenure = self.tenures.value(actor);
        let asked = (work == Work::Resume && tenure.begins_resume()).then(|| tenure.claim()).flatten();
        let superseded =
            asked.is_some_and(|claim| self.worlds.value(world).supersedes(&self.tables, claim.epoch));
        self.begun.get((actor, work, superseded), |(_, work, superseded)| {
            let with = tenure.with(*work, &self.tables, &self.bounds, *superseded)?;
            let deed = with.deed(*work, &self.tables, &self.bounds)?;
            Some((self.tenures.number(with), self.deeds.number(deed)))
        })
    }

    /// The stores after `deed`, and its answer.
    fn perform(&self, world: u32, deed: u32) -> (u32, u32) {
        self.performed.get((world, deed), |(world, deed)| {
            let mut next = World::clone(&self.worlds.value(*world));
            let answer = next.perform(&self.tables, &self.deeds.value(*deed));
            (self.worlds.number(next), self.answers.number(answer))
        })
    }

    fn feed(&self, actor: u32, work: Work, answer: u32) -> Fed {
        self.fed.get((actor, work, answer), |(actor, work, answer)| {
            let answer = Answer::clone(&self.answers.value(*answer));
            let fed = self.tenures.value(*actor).feed(*work, &self.tables, &self.bounds, answer);
            let ledger = fed.ledger.map(|ledger| self.ledgers.number(ledger));
            (self.tenures.number(fed.tenure), fed.told, ledger)
        })
    }

    fn note(&self, world: u32, tenure: u8, told: Told, ledger: Option<u32>) -> (u32, Option<Rule>) {
        self.noted.get((world, tenure, told, ledger), |(world, tenure, told, ledger)| {
            self.milestones.note(*told);
            let mut next = World::clone(&self.worlds.value(*world));
            let ledger = ledger.map(|ledger| self.ledgers.value(ledger));
            let broken = next.note(*tenure, *told, ledger.as_deref(), self.bounds.rewinds == 0);
            (self.worlds.number(next), broken)
        })
    }

    /// Rule 5: from here one more opener, alone, gets through, and finds what the other rules say.
    fn alone(&self, world: u32) -> Option<Rule> {
        self.alone.get(world, |world| {
            let mut world = World::clone(&self.worlds.value(*world));
            let tenure = Bounds::TENURES_MAX + 1;
            world.acquire(tenure);
            let claim = self.tables.claim(tenure, world.row.epoch);
            let floor = Floor::new(world.row.floor.into()).expect("a floor");
            // It is not led astray: what others did wrong is to be seen.
            let bounds = Bounds { mutation: None, ..self.bounds };
            let mut tenure = Tenure::opening(tenure, claim, floor, &bounds);
            for _ in 0..STEPS_ALONE_MAX {
                let Some(deed) = tenure.deed(Work::Open, &self.tables, &bounds) else { break };
                let answer = world.perform(&self.tables, &deed);
                let number = tenure.number();
                let fed = tenure.feed(Work::Open, &self.tables, &bounds, answer);
                match fed.told {
                    None => tenure = fed.tenure,
                    Some(Told::Fenced(_)) => return Some(Rule::NotThrough),
                    Some(told) => return world.note(number, told, None, true),
                }
            }
            Some(Rule::NotThrough)
        })
    }

    /// The stores before anything happened.
    pub(crate) fn first_world(&self) -> u32 {
        self.worlds.number(World::new(self.bounds.rewinds > 0))
    }

    pub(crate) fn is_of(&self, world: u32, claim: &Claim) -> bool {
        self.worlds.value(world).is_of(claim)
    }

    /// Whether nobody has the row.
    pub(crate) fn is_free(&self, world: u32) -> bool {
        self.worlds.value(world).row.tenure == 0
    }

    /// The row is given back; whether it was this claim's.
    pub(crate) fn released(&self, world: u32, claim: &Claim) -> (u32, bool) {
        let mine = self.is_of(world, claim);
        (self.changed(world, |world| world.release(claim)), mine)
    }

    /// Whether a publish holds exactly this.
    pub(crate) fn has(&self, world: u32, ledger: &Ledger) -> bool {
        self.worlds.value(world).has(ledger)
    }

    /// The row is taken: by which claim, at which floor.
    pub(crate) fn acquired(&self, world: u32, tenure: u8) -> (u32, Claim, u8) {
        let world = self.changed(world, |world| world.acquire(tenure));
        let row = self.worlds.value(world).row;
        (world, self.tables.claim(tenure, row.epoch), row.floor)
    }

    /// The plans with `work` under way; `None` if it cannot be begun.
    pub(crate) fn begun(&self, world: u32, plans: &Tenure, work: Work) -> Option<Tenure> {
        let superseded =
            plans.claim().is_some_and(|claim| self.worlds.value(world).supersedes(&self.tables, claim.epoch));
        plans.with(work, &self.tables, &self.bounds, superseded)
    }

    /// One step of `work`, with the answer that is known already or the stores' own.
    pub(crate) fn advance(
        &self,
        world: u32,
        tenure: u8,
        plans: &Tenure,
        work: Work,
        known: Option<Answer>,
    ) -> (u32, Tenure, Option<Told>, Option<Rule>) {
        let actor = self.tenures.number(plans.clone());
        let (world, answer) = match (known, plans.deed(work, &self.tables, &self.bounds)) {
            (Some(answer), _) => (world, self.answers.number(answer)),
            (None, Some(deed)) => self.perform(world, self.deeds.number(deed)),
            (None, None) => return (world, plans.clone(), None, Some(Rule::NotThrough)),
        };
        let (actor, told, ledger) = self.feed(actor, work, answer);
        let plans = Tenure::clone(&self.tenures.value(actor));
        let (world, broken) = match told {
            // A deadline says nothing of the row.
            None | Some(Told::Fenced(FencedReason::Lapsed)) => (world, None),
            // A look at the store that is overtaken by its own tenure's forget sees that; the transitions heed it no more.
            Some(Told::Fenced(_)) if work == Work::Resume => (world, None),
            Some(told) => self.note(world, tenure, told, ledger),
        };
        (world, plans, told, broken)
    }

    fn do_next(&self, last: &State, doing: Doing, who: usize, work: Work) -> Option<State> {
        let mut next = *last;
        let (actor, deed) = self.begin(last.world, last.actors[who], work)?;
        match doing {
            Doing::Step => {
                let (world, answer) = self.perform(last.world, deed);
                self.answered(&mut next, who, (world, actor), work, answer);
            }
            Doing::Silent => {
                let answer = self.answers.number(Answer::Row(Err(())));
                self.answered(&mut next, who, (last.world, actor), work, answer);
            }
            Doing::Lose => {
                next.world = self.perform(last.world, deed).0;
                next.actors[who] = self.tenures.number(self.tenures.value(actor).unanswered(work));
                next.lost -= 1;
            }
            Doing::Defer => {
                next.late -= 1;
                next.world =
                    self.changed(last.world, |world| world.defer(&self.tables, &self.deeds.value(deed)));
                next.actors[who] = actor;
                if self.bounds.mutation == Some(Mutation::FateAssumed) && work == Work::Upload {
                    let created = self.answers.number(Answer::Put(leasehold_blob::Put::Created));
                    let world = next.world;
                    self.answered(&mut next, who, (world, actor), work, created);
                }
            }
            Doing::GiveUp => next.actors[who] = self.tenures.number(self.tenures.value(actor).given_up()),
            Doing::Page(names) => {
                let mut page = self.worlds.value(last.world).listed(&self.tables);
                page.truncate(names.into());
                let after = page.last()?.0;
                next.actors[who] = self.tenures.number(self.tenures.value(actor).paged(work, page, after));
            }
            Doing::DeleteOne(which) => {
                let Some(Ask::DeleteEpoch(epoch)) = self.tenures.value(actor).asks(work) else { return None };
                next.world = self.changed(last.world, |world| {
                    world.delete_one(&self.tables, epoch, which.into());
                });
                next.actors[who] = actor;
                next.lost -= 1;
            }
        }
        if work == Work::Forget && self.tenures.value(last.actors[who]).can_forget() {
            next.forgets -= 1;
        }
        Some(self.settled(next))
    }

    fn answered(&self, next: &mut State, who: usize, (world, actor): (u32, u32), work: Work, answer: u32) {
        let (actor, told, ledger) = self.feed(actor, work, answer);
        next.actors[who] = actor;
        next.world = world;
        if let Some(told) = told {
            let (world, broken) = self.note(world, byte(who as u64), told, ledger);
            next.world = world;
            next.broken = broken;
        }
    }

    /// Without what cannot matter any more, and judged by the opener that comes next.
    fn settled(&self, mut next: State) -> State {
        if next.forgets == 0 {
            for actor in &mut next.actors[1..=usize::from(next.acquired)] {
                *actor = self.tenures.number(self.tenures.value(*actor).without_forget());
            }
        }
        next.broken = next.broken.or_else(|| self.alone(next.world));
        next
    }

    fn acquire(&self, last: &State, to_forget: bool) -> State {
        let mut next = *last;
        next.acquired += 1;
        next.world = self.changed(last.world, |world| world.acquire(next.acquired));
        let row = self.worlds.value(next.world).row;
        let claim = self.tables.claim(next.acquired, row.epoch);
        let tenure = if to_forget {
            next.forgets -= 1;
            Tenure::forgetting(next.acquired, claim)
        } else {
            let floor = Floor::new(row.floor.into()).expect("a floor");
            Tenure::opening(next.acquired, claim, floor, &self.bounds)
        };
        next.actors[usize::from(next.acquired)] = self.tenures.number(tenure);
        self.settled(next)
    }

    /// The rule that a state breaks.
    #[must_use]
    pub const fn broken(state: &State) -> Option<Rule> {
        state.broken
    }

    fn keeps(&self, state: &State, rule: Rule) -> bool {
        state.broken != Some(rule) || self.first_broken.get_or_init(|| *state) != state
    }
}

impl Model for Life {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let nobody = self.tenures.number(Tenure::default());
        vec![State {
            world: self.first_world(),
            actors: [nobody; ACTORS],
            acquired: 0,
            forgets: self.bounds.forgets,
            rechecks: self.bounds.rechecks,
            lost: self.bounds.lost,
            late: self.bounds.late,
            rewinds: self.bounds.rewinds,
            broken: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let world = self.worlds.value(state.world);
        let small = |number: usize| byte(number as u64);
        if state.acquired < self.bounds.tenures {
            actions.push(Action::Acquire);
            if state.forgets > 0 && state.acquired > 0 {
                actions.push(Action::AcquireToForget);
            }
        }
        if state.rechecks > 0 && world.row.floor > 0 {
            actions.push(Action::Recheck);
        }
        if state.rewinds > 0 {
            let rows = world.earlier_rows().iter().enumerate();
            actions.extend(
                rows.filter(|(_, row)| **row != world.row).map(|(to, _)| Action::FallBack(small(to))),
            );
        }
        actions.extend((0..world.late().len()).map(|which| Action::Land(small(which))));
        for who in HOUSEKEEPER..=usize::from(state.acquired) {
            let actor = state.actors[who];
            let tenure = self.tenures.value(actor);
            for Ready { work, kind, begins_resume } in self.ready(actor).iter().copied() {
                let mut push = |doing| actions.push(Action::Do(doing, small(who), WorkKind(work)));
                // It is asked only once the row has granted a renewal.
                if begins_resume && !tenure.claim().is_some_and(|claim| world.is_of(claim)) {
                    continue;
                }
                push(Doing::Step);
                if work == Work::Upload && tenure.uploads() {
                    push(Doing::GiveUp);
                }
                match kind {
                    Kind::Put if state.late > 0 => push(Doing::Defer),
                    Kind::Row if self.bounds.row_silent => push(Doing::Silent),
                    Kind::List if self.bounds.paged && !tenure.is_paging() => {
                        let names = world.listed(&self.tables).len();
                        (1..names).for_each(|names| push(Doing::Page(small(names))));
                    }
                    _ => {}
                }
                if state.lost > 0 {
                    match kind {
                        Kind::Put | Kind::Change => push(Doing::Lose),
                        Kind::DeleteEpoch => {
                            push(Doing::Lose);
                            if let Some(Ask::DeleteEpoch(epoch)) = tenure.asks(work) {
                                let names = world.in_epoch(&self.tables, epoch).len();
                                (0..names).for_each(|which| push(Doing::DeleteOne(small(which))));
                            }
                        }
                        Kind::Read | Kind::List | Kind::Row => {}
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        Some(match action {
            Action::Acquire => self.acquire(last, false),
            Action::AcquireToForget => self.acquire(last, true),
            Action::Recheck => {
                let mut next = *last;
                let floor = Floor::new(self.worlds.value(last.world).row.floor.into()).expect("a floor");
                next.actors[HOUSEKEEPER] = self.tenures.number(Tenure::rechecking(&self.tables, floor));
                next.rechecks -= 1;
                next
            }
            Action::FallBack(to) => {
                let rewinds = last.rewinds - 1;
                let world = self.changed(last.world, |world| world.fall_back(to.into(), rewinds == 0));
                self.settled(State { world, rewinds, ..*last })
            }
            Action::Land(which) => {
                let world = self.changed(last.world, |world| world.land(&self.tables, which.into()));
                self.settled(State { world, ..*last })
            }
            Action::Do(doing, who, WorkKind(work)) => return self.do_next(last, doing, who.into(), work),
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Rule::PublishedWriteLost.name(), |life, state| {
                life.keeps(state, Rule::PublishedWriteLost)
            }),
            Property::always(Rule::SupersededImageRead.name(), |life, state| {
                life.keeps(state, Rule::SupersededImageRead)
            }),
            Property::always(Rule::EpochShared.name(), |life, state| life.keeps(state, Rule::EpochShared)),
            Property::always(Rule::ForgottenServed.name(), |life, state| {
                life.keeps(state, Rule::ForgottenServed)
            }),
            Property::always(Rule::NotThrough.name(), |life, state| life.keeps(state, Rule::NotThrough)),
            Property::always(Rule::AcknowledgedUnpublished.name(), |life, state| {
                life.keeps(state, Rule::AcknowledgedUnpublished)
            }),
            Property::always(Rule::OwnerUndone.name(), |life, state| life.keeps(state, Rule::OwnerUndone)),
            Property::always(Rule::SupersededResumed.name(), |life, state| {
                life.keeps(state, Rule::SupersededResumed)
            }),
        ]
    }
}
