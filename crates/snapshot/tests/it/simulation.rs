//! Whole lives of a tenant, step by step and in any order, against protocol.md's rules: several tenures at
//! once, each stalled between any two steps, crashes, lost answers, puts that are executed long after their
//! caller saw an error, half-done deletions, lease rows that fall back to an earlier state, and clocks that lie
//! without bound.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use leasehold_blob::BlobKey;
use leasehold_lease::Claim;
use leasehold_snapshot::{
    OwnManifests, SnapshotError, SnapshotRef,
    format::Manifest,
    plan::{
        Answer, Ask, ForgetPlan, Keep, OpenPlan, PublishPlan, Resume, ResumePlan, Start, Step, SweepPlan,
    },
};
use leasehold_types::{Epoch, Floor, TenureId};
use proptest::prelude::*;

use crate::world::{KEEP, Ledger, NOW, Row, World};

const TENURES_MAX: usize = 6;
const ROLLBACKS_MAX: usize = 3;

/// The choices of one life, drawn from what proptest gives and shrinks.
struct Choices<'a>(std::slice::Iter<'a, u16>);

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> Option<usize> {
        self.0.next().map(|choice| usize::from(*choice) % bound)
    }

    fn one_in(&mut self, bound: usize) -> Option<bool> {
        self.below(bound).map(|choice| choice == 0)
    }
}

/// One tenure, from its acquisition to its end.
struct Tenure {
    claim: Claim,
    stage: Stage,
    own: OwnManifests,
    ledger: Ledger,
    upload: Option<(PublishPlan, Bytes)>,
    sweep: Option<SweepPlan>,
    resume: Option<(ResumePlan, bool)>,
    forget: Option<ForgetPlan>,
    /// The forget's row was raised: it never serves again.
    forgetting: bool,
}

/// The caller saw an error; whether the step was executed, or will be, it cannot know.
struct Unanswered;

enum Stage {
    Opening(Box<OpenPlan>),
    Serving,
    Over,
}

/// What happened over many lives: the suite must not pass by never getting anywhere.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    served: u32,
    served_from_snapshot: u32,
    published: u32,
    fenced: u32,
    forgotten: u32,
    swept: u32,
    resumed: u32,
    superseded: u32,
    rolled_back: u32,
    landed: u32,
}

struct Life {
    world: World,
    tenures: Vec<Tenure>,
    rows: Vec<Row>,
    rollbacks: usize,
    deferred: Vec<(BlobKey, Bytes)>,
    forgotten: Vec<Floor>,
    served: Vec<(Epoch, TenureId)>,
    writes: u32,
    keep: Keep,
    seen: Seen,
    /// Whose turn it is, and what was done so far.
    who: String,
    trace: Vec<String>,
}

/// A life that broke a rule is told step by step.
impl Drop for Life {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- a life\n{}", self.trace.join("\n"));
        }
    }
}

impl Life {
    fn new(keep: Keep) -> Self {
        let world = World::new();
        let rows = vec![world.row.clone()];
        Self {
            world,
            tenures: Vec::new(),
            rows,
            rollbacks: 0,
            deferred: Vec::new(),
            forgotten: Vec::new(),
            served: Vec::new(),
            writes: 0,
            keep,
            seen: Seen::default(),
            who: String::new(),
            trace: Vec::new(),
        }
    }

    fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        self.trace.push(format!("{} {}: {what}", self.world.tick, self.who));
    }

    fn acquire(&mut self) {
        let claim = self.world.acquire();
        let plan = self.world.open_plan(&claim);
        self.tenures.push(Tenure {
            claim,
            stage: Stage::Opening(Box::new(plan)),
            own: OwnManifests::new(),
            ledger: Ledger::new(),
            upload: None,
            sweep: None,
            resume: None,
            forget: None,
            forgetting: false,
        });
    }

    /// One event; `None` when the choices are used up.
    fn step(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let idle = self.tenures.iter().all(|tenure| matches!(tenure.stage, Stage::Over));
        match choices.below(48)? {
            0 if self.tenures.len() < TENURES_MAX => self.acquire(),
            _ if idle && self.tenures.len() < TENURES_MAX => self.acquire(),
            1 if self.rollbacks < ROLLBACKS_MAX => {
                let to = choices.below(self.rows.len())?;
                self.world.row = self.rows[to].clone();
                self.trace.push(format!("the row falls back to {:?}", self.world.row));
                self.rollbacks += 1;
                self.seen.rolled_back += 1;
            }
            2 if !self.deferred.is_empty() => {
                let which = choices.below(self.deferred.len())?;
                let (key, body) = self.deferred.swap_remove(which);
                self.world.tick += 1;
                let put = self.world.put(&key, body);
                self.trace.push(format!("{} lands: {put:?} {key}", self.world.tick));
                self.seen.landed += 1;
            }
            _ if !self.tenures.is_empty() => {
                let which = choices.below(self.tenures.len())?;
                let mut tenure = self.tenures.swap_remove(which);
                self.who = which_of(&tenure);
                let went_on = self.step_of(&mut tenure, choices);
                self.tenures.push(tenure);
                went_on?;
            }
            _ => {}
        }
        if self.rows.last() != Some(&self.world.row) {
            self.rows.push(self.world.row.clone());
        }
        Some(())
    }

    fn step_of(&mut self, tenure: &mut Tenure, choices: &mut Choices<'_>) -> Option<()> {
        // A crash, at any moment.
        if choices.one_in(200)? {
            tenure.stage = Stage::Over;
            return Some(());
        }
        match &mut tenure.stage {
            Stage::Over => {}
            Stage::Opening(plan) => match plan.next() {
                Step::Ask(ask) => {
                    let Ok(answer) = self.perform(&ask, None, choices)? else { return Some(()) };
                    if let Err(error) = plan.feed(answer) {
                        self.ended(&error);
                        tenure.stage = Stage::Over;
                    } else if let Step::Done(start) = plan.next() {
                        self.begin(tenure, &start);
                    }
                }
                Step::Done(_) => unreachable!("it serves by the step that ended its opening"),
            },
            Stage::Serving if tenure.forget.is_some() && tenure.upload.is_none() => {
                self.step_forget(tenure, choices)?;
            }
            Stage::Serving => match choices.below(6)? {
                0..=2 => self.step_upload(tenure, choices)?,
                3 => self.step_sweep(tenure, choices)?,
                4 => self.step_resume(tenure, choices)?,
                _ if choices.one_in(12)? => tenure.forget = Some(ForgetPlan::new(tenure.claim.clone(), NOW)),
                _ => {}
            },
        }
        Some(())
    }

    /// Performs a step, or some of it; without an answer it is asked again.
    fn perform(
        &mut self,
        ask: &Ask,
        image: Option<&Bytes>,
        choices: &mut Choices<'_>,
    ) -> Option<Result<Answer, Unanswered>> {
        // The lease store may stay away after a manifest is in: a tenure that the row would stop goes on.
        if matches!(ask, Ask::ReadRow) && choices.one_in(2)? {
            return Some(Ok(Answer::Row(Err(()))));
        }
        let lost = choices.one_in(12)?;
        if !lost {
            let answer = self.world.perform(ask, image);
            self.tell(format_args!("{}: {}", shown(ask), answered(&answer)));
            return Some(Ok(answer));
        }
        let executed = choices.below(3)?;
        self.tell(format_args!("{}: no answer ({executed})", shown(ask)));
        let put = match ask {
            Ask::Put { key, body } => Some((key, body.clone())),
            Ask::Upload(key) => image.map(|image| (key, image.clone())),
            _ => None,
        };
        match (put, executed) {
            // Not now, perhaps later.
            (Some((key, body)), 0) => self.deferred.push((key.clone(), body)),
            (_, 0) => {}
            // A deletion that got half-way.
            (None, 1) if matches!(ask, Ask::DeleteEpoch(_)) => {
                if let Ask::DeleteEpoch(epoch) = ask {
                    let keys = self.world.keys_in(*epoch);
                    for key in keys.iter().filter(|key| key.as_str().len() % 2 == 0) {
                        self.world.objects.remove(key);
                    }
                }
            }
            _ => drop(self.world.perform(ask, image)),
        }
        Some(Err(Unanswered))
    }

    fn ended(&mut self, error: &SnapshotError) {
        match error {
            SnapshotError::Fenced { .. } => self.seen.fenced += 1,
            // What is missing is always explained by a forget or a successor.
            error => panic!("{error}"),
        }
    }

    /// Rules 1 to 4, at the moment at which a tenure begins to serve.
    fn begin(&mut self, tenure: &mut Tenure, start: &Start) {
        let Start { claim, floor, manifest, .. } = start;
        let pins: Vec<_> = self.world.pins.iter().filter(|(_, epoch, _)| *epoch == claim.epoch).collect();
        // Rule 2.
        assert!(pins.iter().all(|(_, _, by)| *by == claim.tenure), "an epoch has one owner's base");
        assert!(
            !self.served.iter().any(|(epoch, by)| *epoch == claim.epoch && *by != claim.tenure),
            "an epoch is served by one tenure"
        );
        let pinned_at = pins.last().expect("it pinned").0;
        // Rules 1 and 3: the newest publish that was put before the pin, unless a forget covered it. One that
        // has raised its floor in a row that was rewound since covers it or does not: whether anybody still
        // knows of it decides.
        let rows = self.rows.iter().chain([&self.world.row]).map(|row| row.floor);
        let floors: BTreeSet<_> = rows.chain([*floor]).filter(|raised| raised >= floor).collect();
        let newest_above = |floor: Floor| {
            let mut before = self.world.published.iter().filter(|published| published.tick < pinned_at);
            before.rfind(|published| !floor.covers(published.manifest.epoch))
        };
        let started = manifest.as_ref().map(|manifest| manifest.snapshot());
        let newest = floors
            .iter()
            .map(|floor| newest_above(*floor))
            .find(|newest| started == newest.map(|published| published.manifest.snapshot()));
        let newest = newest.unwrap_or_else(|| panic!("{started:?} is not the newest publish")).cloned();
        self.tell(format_args!("serves at {} from {started:?}", claim.epoch));
        // Rule 4.
        for forgotten in &self.forgotten {
            assert!(!forgotten.covers(claim.epoch), "no epoch is served at or below a completed forget");
            assert!(!manifest.as_ref().is_some_and(|manifest| forgotten.covers(manifest.epoch)));
        }
        let raised = self.rows.iter().map(|row| row.floor).max().unwrap_or_default();
        assert!(*floor <= raised.max(self.world.row.floor), "a floor was some row's");
        if let Some(published) = newest {
            tenure.ledger.clone_from(published.ledger.as_ref().expect("what is started from was whole"));
            self.seen.served_from_snapshot += 1;
        }
        tenure.claim = claim.clone();
        tenure.stage = Stage::Serving;
        self.served.push((claim.epoch, claim.tenure));
        self.seen.served += 1;
    }

    fn step_upload(&mut self, tenure: &mut Tenure, choices: &mut Choices<'_>) -> Option<()> {
        let Some((mut plan, image)) = tenure.upload.take() else {
            if !tenure.forgetting {
                self.writes += 1;
                tenure.ledger.push(self.writes);
                let inline = choices.one_in(2)?;
                let (draft, body) = self.world.draft(&tenure.ledger, inline);
                tenure.upload =
                    Some((PublishPlan::new(tenure.claim.clone(), tenure.own.clone(), draft), body));
            }
            return Some(());
        };
        // Given up in the middle, as when a store stays away: the fate of its number is open.
        if choices.one_in(15)? {
            return Some(());
        }
        match plan.next() {
            Step::Ask(ask) => {
                if let Ok(answer) = self.perform(&ask, Some(&image), choices)? {
                    let fed = plan.feed(answer);
                    tenure.own = plan.own().clone();
                    if let Err(error) = fed {
                        self.ended(&error);
                        tenure.stage = Stage::Over;
                        return Some(());
                    }
                }
                tenure.upload = Some((plan, image));
            }
            Step::Done(number) => {
                let ours = |manifest: &Manifest| {
                    manifest.snapshot() == SnapshotRef { epoch: tenure.claim.epoch, number }
                        && manifest.tenure_id == tenure.claim.tenure
                };
                let published = self.world.published.iter().rfind(|published| ours(&published.manifest));
                let acknowledged = published.and_then(|published| published.ledger.as_ref());
                assert_eq!(acknowledged, Some(&tenure.ledger), "what is acknowledged was put");
                self.seen.published += 1;
            }
        }
        Some(())
    }

    fn step_sweep(&mut self, tenure: &mut Tenure, choices: &mut Choices<'_>) -> Option<()> {
        let mut plan = tenure.sweep.take().unwrap_or_else(|| {
            let newest = tenure.own.newest().cloned();
            SweepPlan::new(tenure.claim.clone(), newest, self.keep, NOW)
        });
        match plan.next() {
            Step::Ask(ask) => {
                if let Ok(answer) = self.perform(&ask, None, choices)? {
                    plan.feed(answer).unwrap();
                }
                tenure.sweep = Some(plan);
            }
            Step::Done(_) => self.seen.swept += 1,
        }
        Some(())
    }

    fn step_resume(&mut self, tenure: &mut Tenure, choices: &mut Choices<'_>) -> Option<()> {
        let (mut plan, superseded) = match tenure.resume.take() {
            Some(begun) => begun,
            None if self.world.is_of(&tenure.claim) => {
                // The row grants, whether or not it was rewound: what does the store know at this moment?
                let successor = self.world.pins.iter().any(|(_, epoch, _)| *epoch > tenure.claim.epoch);
                let superseded = successor || self.world.floor().covers(tenure.claim.epoch);
                (ResumePlan::new(tenure.claim.clone(), &tenure.own), superseded)
            }
            None => return Some(()),
        };
        match plan.next() {
            Step::Ask(ask) => {
                if let Ok(answer) = self.perform(&ask, None, choices)? {
                    plan.feed(answer).unwrap();
                }
                tenure.resume = Some((plan, superseded));
            }
            Step::Done(Resume::Agrees) => {
                assert!(!superseded, "a tenure that was superseded before it looked is told so");
                self.seen.resumed += 1;
            }
            Step::Done(Resume::Superseded(_)) => {
                tenure.stage = Stage::Over;
                self.seen.superseded += 1;
            }
        }
        Some(())
    }

    fn step_forget(&mut self, tenure: &mut Tenure, choices: &mut Choices<'_>) -> Option<()> {
        let Some(mut plan) = tenure.forget.take() else { return Some(()) };
        tenure.forgetting = true;
        match plan.next() {
            Step::Ask(ask) => {
                if let Ok(answer) = self.perform(&ask, None, choices)?
                    && let Err(error) = plan.feed(answer)
                {
                    self.ended(&error);
                    tenure.stage = Stage::Over;
                    return Some(());
                }
                tenure.forget = Some(plan);
            }
            Step::Done(forgotten) => {
                self.forgotten.push(forgotten.floor);
                self.seen.forgotten += 1;
                tenure.stage = Stage::Over;
            }
        }
        Some(())
    }

    /// Rule 5: whatever crashed, the next opener gets through, and finds what rules 1 to 4 say.
    fn last_opener_gets_through(&mut self) {
        self.tenures.clear();
        self.acquire();
        let mut tenure = self.tenures.pop().unwrap();
        let mut asked = 0;
        loop {
            let Stage::Opening(plan) = &mut tenure.stage else { unreachable!() };
            match plan.next() {
                Step::Ask(ask) => {
                    asked += 1;
                    assert!(asked < 200, "an opener without contention gets through");
                    plan.feed(self.world.perform(&ask, None)).unwrap();
                }
                Step::Done(start) => return self.begin(&mut tenure, &start),
            }
        }
    }
}

fn which_of(tenure: &Tenure) -> String {
    format!("{} at {}", tenure.claim.replica, tenure.claim.epoch)
}

fn shown(ask: &Ask) -> String {
    match ask {
        Ask::Put { key, .. } => format!("put {key}"),
        Ask::Fetch(manifest) => format!("fetch {}", manifest.snapshot()),
        ask => format!("{ask:?}"),
    }
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Listed(listing) => {
            format!("{:?}", listing.epochs.keys().map(|epoch| epoch.get()).collect::<Vec<_>>())
        }
        Answer::Got(Some(body)) => String::from_utf8_lossy(body).into_owned(),
        answer => format!("{answer:?}"),
    }
}

fn live(choices: &[u16], keep: Keep) -> Seen {
    let mut life = Life::new(keep);
    let mut choices = Choices(choices.iter());
    while life.step(&mut choices).is_some() {}
    life.last_opener_gets_through();
    life.seen
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_whatever_happens(choices in prop::collection::vec(any::<u16>(), 200..1_500)) {
        live(&choices, KEEP);
    }

    #[test]
    fn the_rules_hold_while_superseded_snapshots_are_kept(choices in prop::collection::vec(any::<u16>(), 200..1_500)) {
        live(&choices, Keep { fences: Duration::from_secs(86_400), superseded: 2 });
    }
}

#[test]
fn the_lives_that_are_checked_get_somewhere() {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u16::try_from(state >> 48).unwrap()
    };
    let mut all = Seen::default();
    for _ in 0..60 {
        let choices: Vec<u16> = (0..1_200).map(|_| next()).collect();
        let seen = live(&choices, KEEP);
        all.served += seen.served;
        all.served_from_snapshot += seen.served_from_snapshot;
        all.published += seen.published;
        all.fenced += seen.fenced;
        all.forgotten += seen.forgotten;
        all.swept += seen.swept;
        all.resumed += seen.resumed;
        all.superseded += seen.superseded;
        all.rolled_back += seen.rolled_back;
        all.landed += seen.landed;
    }
    let counts = [
        all.served,
        all.served_from_snapshot,
        all.published,
        all.fenced,
        all.forgotten,
        all.swept,
        all.resumed,
        all.superseded,
        all.rolled_back,
        all.landed,
    ];
    assert!(counts.iter().all(|count| *count >= 5), "{all:?}");
}
