//! One tenure as a value: the product's plans, each where it stands, and what the tenure knows.
//!
//! A tenure that crashed is one that takes no further step, which every stall is; so there is no crash of its own.

mod astray;

use bytes::Bytes;
use leasehold_lease::Claim;
use leasehold_snapshot::{
    OwnManifest, OwnManifests, SnapshotError, SnapshotNumber,
    format::Encoding,
    plan::{
        Answer, Ask, ClearPlan, Draft, EncodedImage, ForgetPlan, OpenPlan, Opening, PublishPlan, Resume,
        ResumePlan, Start, Step, SweepPlan,
    },
};
use leasehold_types::{AttemptId, Epoch, Floor, Position};

use self::astray::Astray;
use crate::{
    bounds::Bounds,
    mutation::Mutation,
    tables::{Ledger, NOW, Object, Tables, byte},
    world::{Deed, Told},
};

/// What a tenure can be in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Work {
    Open,
    Upload,
    Sweep,
    Resume,
    Forget,
    Recheck,
}

impl Work {
    pub(crate) const ALL: [Self; 6] =
        [Self::Open, Self::Upload, Self::Sweep, Self::Resume, Self::Forget, Self::Recheck];
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Upload {
    plan: PublishPlan,
    ledger: Ledger,
    image: Bytes,
}

/// A listing of which the first page is here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Page {
    work: Work,
    objects: Vec<Object>,
    after: u16,
}

/// A tenure between two of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tenure {
    number: u8,
    /// While it opens or serves.
    claim: Option<Claim>,
    own: OwnManifests,
    ledger: Ledger,
    publishes: u8,
    sweeps: u8,
    resumes: u8,
    may_forget: bool,
    open: Option<OpenPlan>,
    upload: Option<Upload>,
    /// Goes on when the tenure is over: nobody stops it.
    sweep: Option<SweepPlan>,
    resume: Option<(ResumePlan, bool)>,
    forget: Option<ForgetPlan>,
    recheck: Option<ClearPlan>,
    page: Option<Page>,
    /// An advance of the row had no answer.
    repeated: bool,
    astray: Astray,
}

/// What came of a step.
#[derive(Clone, Debug)]
pub(crate) struct Fed {
    pub(crate) tenure: Tenure,
    pub(crate) told: Option<Told>,
    /// What a publish says it published.
    pub(crate) ledger: Option<Ledger>,
}

fn attempt(tenure: u8, publish: u8) -> AttemptId {
    AttemptId::new(u64::from(tenure) * 16 + u64::from(publish))
}

fn ask<T>(step: Step<T>) -> Option<Ask> {
    match step {
        Step::Ask(ask) => Some(ask),
        Step::Done(_) => None,
    }
}

/// What is missing is always explained by a forget or a successor.
fn came_to(error: &SnapshotError) -> Told {
    error.fenced().map_or(Told::Damaged, Told::Fenced)
}

impl Tenure {
    /// Opens by the claim that it just acquired, at the row's floor.
    pub(crate) fn opening(number: u8, claim: Claim, floor: Floor, bounds: &Bounds) -> Self {
        let opening = Opening { claim: claim.clone(), floor, attempt: attempt(number, 0), at: NOW };
        Self {
            number,
            claim: Some(claim),
            publishes: bounds.publishes,
            sweeps: bounds.sweeps,
            resumes: bounds.resumes,
            may_forget: bounds.forgets > 0,
            open: Some(OpenPlan::new(opening)),
            ..Self::default()
        }
    }

    /// Was acquired to forget the tenant: nothing is restored.
    pub(crate) fn forgetting(number: u8, claim: Claim) -> Self {
        let forget = Some(ForgetPlan::new(claim.clone(), NOW));
        Self { number, claim: Some(claim), forget, ..Self::default() }
    }

    /// Looks again at a forgotten tenant whose row has this floor.
    pub(crate) fn rechecking(tables: &Tables, floor: Floor) -> Self {
        let replica = crate::tables::replica(0);
        let recheck = Some(ClearPlan::new(tables.key(), floor, replica, NOW));
        Self { recheck, ..Self::default() }
    }

    pub(crate) const fn number(&self) -> u8 {
        self.number
    }

    pub(crate) const fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    /// The claim of an opening: its epoch may have been advanced.
    pub(crate) fn opening_claim(&self) -> Option<&Claim> {
        self.open.as_ref().map(OpenPlan::claim)
    }

    /// How many writes the image holds that is being uploaded.
    pub(crate) fn image_writes(&self) -> u8 {
        self.upload.as_ref().map_or(0, |upload| byte(upload.ledger.len() as u64))
    }

    /// Whether calls are let in, as far as the tenure knows.
    fn serves(&self) -> bool {
        self.claim.is_some() && self.open.is_none() && self.forget.is_none()
    }

    pub(crate) fn can_forget(&self) -> bool {
        self.serves() && self.may_forget && self.upload.is_none()
    }

    /// Whether a look at the store is to begin, and not under way.
    pub(crate) fn begins_resume(&self) -> bool {
        self.serves() && self.resume.is_none() && self.resumes > 0
    }

    pub(crate) fn uploads(&self) -> bool {
        self.upload.is_some()
    }

    /// The tenure with `work` under way, begun if it can be; `None` if it cannot. `superseded`: what the store would say at
    /// this moment to whoever asks whether it may resume.
    pub(crate) fn with(
        &self,
        work: Work,
        tables: &Tables,
        bounds: &Bounds,
        superseded: bool,
    ) -> Option<Self> {
        let under_way = match work {
            Work::Open => self.open.is_some(),
            Work::Upload => self.upload.is_some(),
            Work::Sweep => self.sweep.is_some(),
            Work::Resume => self.resume.is_some(),
            Work::Forget => self.forget.is_some(),
            Work::Recheck => self.recheck.is_some(),
        };
        if under_way {
            return Some(self.clone());
        }
        if !self.serves() {
            return None;
        }
        let claim = self.claim.clone()?;
        let mut next = self.clone();
        match work {
            Work::Upload if self.publishes > 0 => {
                next.publishes -= 1;
                next.upload = Some(self.new_upload(claim, tables, bounds));
            }
            Work::Sweep if self.sweeps > 0 => {
                next.sweeps -= 1;
                let mut newest = self.own.newest().cloned();
                if bounds.mutation == Some(Mutation::SweptBeforeOwn) {
                    let first = OwnManifest { number: SnapshotNumber::FIRST, objects: Vec::new() };
                    newest = newest.or(Some(first));
                }
                let keep = Mutation::keep(bounds.mutation);
                next.sweep = Some(SweepPlan::new(claim, newest, keep, NOW));
            }
            Work::Resume if self.resumes > 0 => {
                next.resumes -= 1;
                next.resume = Some((ResumePlan::new(claim, &self.own), superseded));
            }
            Work::Forget if self.can_forget() => next.forget = Some(ForgetPlan::new(claim, NOW)),
            _ => return None,
        }
        Some(next)
    }

    /// A write, and the image with it.
    fn new_upload(&self, claim: Claim, tables: &Tables, bounds: &Bounds) -> Upload {
        let publish = bounds.publishes - self.publishes + 1;
        let mut ledger = self.ledger.clone();
        if !bounds.honest {
            ledger.push(self.number * 16 + publish);
        }
        let (image, sha256) = tables.image(&ledger);
        let draft = Draft {
            attempt: attempt(self.number, publish),
            image: EncodedImage {
                inline: bounds.inline.then(|| image.clone()),
                bytes: image.len() as u64,
                sha256,
                encoding: Encoding::Plain,
            },
            closed: false,
            page_size: 4096,
            pages: 1,
            position: Position { epoch: Epoch::FIRST, seq: ledger.len() as u64 },
            at: NOW,
        };
        Upload { plan: PublishPlan::new(claim, self.own.clone(), draft), ledger, image }
    }

    /// What the plan of `work` asks, as the plan says it.
    pub(crate) fn asks(&self, work: Work) -> Option<Ask> {
        match work {
            Work::Open => ask(self.open.as_ref()?.next()),
            Work::Upload => ask(self.upload.as_ref()?.plan.next()),
            Work::Sweep => ask(self.sweep.as_ref()?.next()),
            Work::Resume => ask(self.resume.as_ref()?.0.next()),
            Work::Forget => ask(self.forget.as_ref()?.next()),
            Work::Recheck => ask(self.recheck.as_ref()?.next()),
        }
    }

    /// What is to be done for `work` now, by a driver that goes astray as the bounds say.
    pub(crate) fn deed(&self, work: Work, tables: &Tables, bounds: &Bounds) -> Option<Deed> {
        let ask = self.asks(work)?;
        if matches!(ask, Ask::List)
            && let Some(page) = self.page.as_ref().filter(|page| page.work == work)
        {
            return Some(Deed::RestOfList { page: page.objects.clone(), after: page.after });
        }
        if let Some(mutation) = bounds.mutation
            && let Some(deed) = self.strays(mutation, work, &ask, tables)
        {
            return Some(deed);
        }
        let image = self.upload.as_ref().filter(|_| matches!(ask, Ask::Upload(_)));
        let image = image.map(|upload| upload.image.clone());
        Some(Deed::Ask { ask, image, repeated: self.repeated && work == Work::Open })
    }

    /// Takes the answer to what [`Self::deed`] said, and to whatever follows from it without the stores.
    pub(crate) fn feed(&self, work: Work, tables: &Tables, bounds: &Bounds, answer: Answer) -> Fed {
        let mut fed = self.feed_one(work, tables, bounds, answer);
        while fed.told.is_none() {
            let answer = match fed.tenure.deed(work, tables, bounds) {
                Some(Deed::Known(answer)) => answer,
                // Asks nobody but a clock, and clocks lie.
                Some(Deed::Ask { ask: Ask::Held, .. }) if !bounds.honest => Answer::Held(Ok(())),
                _ => break,
            };
            fed = fed.tenure.feed_one(work, tables, bounds, answer);
        }
        fed.tenure.settle();
        fed
    }

    fn feed_one(&self, work: Work, tables: &Tables, bounds: &Bounds, answer: Answer) -> Fed {
        let answer = self.believed(bounds.mutation, work, tables, answer);
        let mut tenure = self.clone();
        tenure.page = tenure.page.filter(|page| page.work != work);
        if tenure.goes_astray(bounds.mutation, work, tables, &answer) {
            return Fed { tenure, told: None, ledger: None };
        }
        if work == Work::Open {
            tenure.repeated = false;
        }
        let (told, ledger) = match work {
            Work::Open => (tenure.feed_open(tables, answer), None),
            Work::Upload => tenure.feed_upload(bounds.honest, answer),
            Work::Sweep => (tenure.feed_sweep(answer), None),
            Work::Resume => (tenure.feed_resume(bounds, answer), None),
            Work::Forget => (tenure.feed_forget(answer), None),
            Work::Recheck => (tenure.feed_recheck(answer), None),
        };
        Fed { tenure, told, ledger }
    }

    fn feed_open(&mut self, tables: &Tables, answer: Answer) -> Option<Told> {
        let plan = self.open.as_mut()?;
        if let Err(error) = plan.feed(answer) {
            return Some(self.end(&error));
        }
        let Step::Done(start) = plan.next() else { return None };
        let Start { claim, floor, manifest, .. } = start;
        let from = manifest.as_ref().map(|manifest| {
            let snapshot = manifest.snapshot();
            (byte(snapshot.epoch.get()), byte(snapshot.number.get()))
        });
        self.ledger = manifest.map(|manifest| tables.ledger(manifest.parts[0].sha256)).unwrap_or_default();
        let told = Told::Began { epoch: byte(claim.epoch.get()), floor: byte(floor.get()), from };
        (self.claim, self.open) = (Some(claim), None);
        Some(told)
    }

    /// `honest`: whoever asked decides what a failure means for the rest.
    fn feed_upload(&mut self, honest: bool, answer: Answer) -> (Option<Told>, Option<Ledger>) {
        let Some(Upload { plan, ledger, .. }) = &mut self.upload else { return (None, None) };
        let fed = plan.feed(answer);
        self.own = plan.own().clone();
        match (fed, plan.next()) {
            (Err(error), _) if honest => {
                self.upload = None;
                (Some(came_to(&error)), None)
            }
            (Err(error), _) => (Some(self.end(&error)), None),
            (Ok(()), Step::Ask(_)) => (None, None),
            (Ok(()), Step::Done(number)) => {
                let epoch = self.claim.as_ref().map_or(0, |claim| byte(claim.epoch.get()));
                let ledger = std::mem::take(ledger);
                if ledger.len() > self.ledger.len() {
                    self.ledger.clone_from(&ledger);
                }
                self.upload = None;
                (Some(Told::Acknowledged { epoch, number: byte(number.get()) }), Some(ledger))
            }
        }
    }

    fn feed_sweep(&mut self, answer: Answer) -> Option<Told> {
        let plan = self.sweep.as_mut()?;
        match (plan.feed(answer), plan.next()) {
            (Err(_), _) => Some(Told::Damaged),
            (Ok(()), Step::Ask(_)) => None,
            (Ok(()), Step::Done(_)) => {
                self.sweep = None;
                None
            }
        }
    }

    fn feed_resume(&mut self, bounds: &Bounds, answer: Answer) -> Option<Told> {
        let (plan, superseded) = self.resume.as_mut()?;
        let superseded = *superseded;
        let resumed = if bounds.mutation == Some(Mutation::ResumedByRow) {
            Step::Done(Resume::Agrees)
        } else if plan.feed(answer).is_err() {
            return Some(Told::Damaged);
        } else {
            plan.next()
        };
        match resumed {
            Step::Ask(_) => None,
            Step::Done(Resume::Agrees) => {
                self.resume = None;
                Some(Told::Resumed { superseded })
            }
            Step::Done(Resume::Superseded(reason)) => {
                if bounds.honest {
                    self.resume = None;
                } else {
                    self.over();
                }
                Some(Told::Fenced(reason))
            }
        }
    }

    fn feed_forget(&mut self, answer: Answer) -> Option<Told> {
        let plan = self.forget.as_mut()?;
        if let Err(error) = plan.feed(answer) {
            return Some(self.end(&error));
        }
        let Step::Done(forgotten) = plan.next() else { return None };
        self.over();
        Some(Told::Forgotten { floor: byte(forgotten.floor.get()) })
    }

    fn feed_recheck(&mut self, answer: Answer) -> Option<Told> {
        let plan = self.recheck.as_mut()?;
        match (plan.feed(answer), plan.next()) {
            (Err(_), _) => Some(Told::Damaged),
            (Ok(()), Step::Ask(_)) => None,
            (Ok(()), Step::Done(_)) => {
                self.recheck = None;
                None
            }
        }
    }

    fn end(&mut self, error: &SnapshotError) -> Told {
        self.over();
        came_to(error)
    }

    fn over(&mut self) {
        let (number, sweep) = (self.number, self.sweep.take());
        let page = self.page.take().filter(|page| page.work == Work::Sweep && sweep.is_some());
        *self = Self { number, sweep, page, ..Self::default() };
    }

    /// A tenure that can do nothing more is over.
    fn settle(&mut self) {
        let busy =
            self.open.is_some() || self.upload.is_some() || self.resume.is_some() || self.forget.is_some();
        if !busy && self.publishes == 0 && self.sweeps == 0 && self.resumes == 0 && !self.may_forget {
            self.over();
        }
    }

    /// An answer was lost: the same is asked again.
    pub(crate) fn unanswered(&self, work: Work) -> Self {
        let advances = work == Work::Open && matches!(self.asks(work), Some(Ask::Advance { .. }));
        Self { repeated: self.repeated || advances, ..self.clone() }
    }

    /// The first page of a listing is here.
    pub(crate) fn paged(&self, work: Work, objects: Vec<Object>, after: u16) -> Self {
        Self { page: Some(Page { work, objects, after }), ..self.clone() }
    }

    pub(crate) const fn is_paging(&self) -> bool {
        self.page.is_some()
    }

    /// The upload is given up in the middle: the fate of its number is open.
    pub(crate) fn given_up(&self) -> Self {
        let mut next = Self { upload: None, ..self.clone() };
        next.settle();
        next
    }

    /// A write, committed and acknowledged here.
    pub(crate) fn written(&self, write: u8) -> Self {
        let mut next = self.clone();
        next.ledger.push(write);
        next
    }

    /// Everything that was acknowledged here.
    pub(crate) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// `work` is given up in the middle.
    pub(crate) fn without(&self, work: Work) -> Self {
        let mut next = self.clone();
        match work {
            Work::Open => next.open = None,
            Work::Upload => next.upload = None,
            Work::Resume => next.resume = None,
            Work::Forget => next.forget = None,
            Work::Sweep => next.sweep = None,
            Work::Recheck => next.recheck = None,
        }
        next
    }

    /// No forget will be begun any more.
    pub(crate) fn without_forget(&self) -> Self {
        let mut next = Self { may_forget: false, ..self.clone() };
        if next.forget.is_none() {
            next.settle();
        }
        next
    }
}
