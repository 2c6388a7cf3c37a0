use std::collections::BTreeMap;

use leasehold_types::{FencedReason, Refusal};
use proptest::prelude::*;

use crate::vocabulary::{
    Answer, Effect, Event, LeaseState, Notice, Outcome, Phase, State, Upload, UploadFailure, Waiter,
};

/// What comes of a forget.
#[derive(Clone, Copy, Debug)]
enum Forgetting {
    GoesOn,
    Fails,
    IsFenced,
}

/// What a driver could do next; which event that is depends on what is under way.
#[derive(Clone, Copy, Debug)]
enum Move {
    Ask(Event),
    Lease(Event),
    /// The opening ends.
    Open {
        well: bool,
    },
    /// The upload that is under way ends.
    Upload {
        failure: Option<UploadFailure>,
        dirty: bool,
    },
    /// Work ends, or its time does.
    Drain {
        dirty: bool,
        in_time: bool,
    },
    /// The forget that is under way goes on or fails.
    Forget {
        how: Forgetting,
    },
    /// The release that is under way ends.
    Release,
    /// The check that is under way ends.
    Check {
        agrees: bool,
    },
}

fn moves() -> impl Strategy<Value = Move> {
    let failure = prop_oneof![
        Just(None),
        Just(Some(UploadFailure::Store)),
        Just(Some(UploadFailure::Lapsed)),
        Just(Some(UploadFailure::Superseded(FencedReason::Sealed))),
    ];
    prop_oneof![
        4 => prop_oneof![
            any::<bool>().prop_map(|dirty| Event::SnapshotAsked { dirty }),
            Just(Event::HandoffAsked),
            Just(Event::AbandonAsked),
            Just(Event::ForgetAsked),
            Just(Event::StopAsked),
        ].prop_map(Move::Ask),
        3 => prop_oneof![
            3 => Just(Event::Renewed),
            1 => Just(Event::RenewedLate),
            1 => Just(Event::RenewRefused),
            2 => Just(Event::DeadlinePassed),
        ].prop_map(Move::Lease),
        3 => (failure, any::<bool>()).prop_map(|(failure, dirty)| Move::Upload { failure, dirty }),
        3 => (any::<bool>(), prop::bool::weighted(0.8)).prop_map(|(dirty, in_time)| Move::Drain { dirty, in_time }),
        2 => prop_oneof![3 => Just(Forgetting::GoesOn), 1 => Just(Forgetting::Fails), 1 => Just(Forgetting::IsFenced)]
            .prop_map(|how| Move::Forget { how }),
        2 => Just(Move::Release),
        2 => any::<bool>().prop_map(|agrees| Move::Check { agrees }),
        1 => prop::bool::weighted(0.9).prop_map(|well| Move::Open { well }),
    ]
}

/// A tenure with a driver that keeps books.
#[expect(clippy::struct_excessive_bools, reason = "each is one operation that is under way or not")]
struct Driven {
    state: State,
    opening: bool,
    uploading: bool,
    forgetting: bool,
    releasing: Option<bool>,
    checking: bool,
    /// Who waits, by what for.
    waiting: BTreeMap<&'static str, u32>,
    /// Whether a handoff has told that the gate is closed, since the tenant last served.
    closed: bool,
    ended: u32,
    released: u32,
    forgets_begun: u32,
}

fn name(waiter: Waiter) -> &'static str {
    match waiter {
        Waiter::Handoff => "handoff",
        Waiter::Abandon => "abandon",
        Waiter::Forget => "forget",
        Waiter::Snapshot => "snapshot",
        Waiter::NextSnapshot => "next snapshot",
    }
}

fn asks(event: Event) -> Option<&'static str> {
    match event {
        Event::HandoffAsked => Some("handoff"),
        Event::AbandonAsked => Some("abandon"),
        Event::ForgetAsked => Some("forget"),
        Event::SnapshotAsked { .. } => Some("next snapshot"),
        _ => None,
    }
}

impl Driven {
    fn new() -> Self {
        Self {
            state: State::opening(),
            opening: true,
            uploading: false,
            forgetting: false,
            releasing: None,
            checking: false,
            waiting: BTreeMap::new(),
            closed: false,
            ended: 0,
            released: 0,
            forgets_begun: 0,
        }
    }

    fn serving() -> Self {
        let mut driven = Self::new();
        driven.act(Move::Open { well: true });
        driven
    }

    /// The event of a move, if it can happen now.
    fn event(&self, action: Move) -> Option<Event> {
        Some(match action {
            // A handle exists once the opening is over; the opening itself can be stopped.
            Move::Ask(event) if self.opening != (event == Event::StopAsked) => return None,
            Move::Ask(event) | Move::Lease(event) => event,
            Move::Open { well } if self.opening => {
                if well {
                    Event::Opened
                } else {
                    Event::OpenFailed { acquired: true }
                }
            }
            Move::Upload { failure, dirty } if self.uploading => match failure {
                None => Event::UploadPublished { dirty },
                Some(failure) => Event::UploadFailed { failure, dirty },
            },
            Move::Drain { dirty, in_time: true } => Event::Drained { dirty },
            Move::Drain { in_time: false, .. } => Event::DrainTimedOut,
            Move::Forget { how } if self.forgetting => match how {
                // Once the floor is raised nobody else's tenure stops it.
                Forgetting::IsFenced if !self.state.floor_raised => {
                    Event::ForgetFailed { superseded: Some(FencedReason::Lost) }
                }
                Forgetting::Fails | Forgetting::IsFenced => Event::ForgetFailed { superseded: None },
                Forgetting::GoesOn if self.state.floor_raised => Event::Forgotten,
                Forgetting::GoesOn => Event::FloorRaised,
            },
            Move::Release => Event::ReleaseEnded { flushed: self.releasing? },
            Move::Check { agrees } if self.checking => {
                if agrees {
                    Event::StoreAgrees
                } else {
                    Event::StoreDisagrees(FencedReason::Sealed)
                }
            }
            _ => return None,
        })
    }

    fn act(&mut self, action: Move) {
        let Some(event) = self.event(action) else { return };
        let before = self.state;
        let step = before.step(event).expect("a driver that keeps its books feeds nothing illegal");
        match event {
            Event::Opened | Event::OpenFailed { .. } => self.opening = false,
            Event::UploadPublished { .. } | Event::UploadFailed { .. } => self.uploading = false,
            Event::Forgotten | Event::ForgetFailed { .. } => self.forgetting = false,
            Event::ReleaseEnded { .. } => self.releasing = None,
            Event::StoreAgrees | Event::StoreDisagrees(_) => self.checking = false,
            _ => {}
        }
        if let (Some(what), Answer::Begun | Answer::Joined) = (asks(event), step.answer) {
            *self.waiting.entry(what).or_default() += 1;
        }
        self.state = step.state;
        for effect in &step.effects {
            self.effect(*effect, before, event);
        }
        self.invariants(before, event);
    }

    fn effect(&mut self, effect: Effect, before: State, event: Event) {
        match effect {
            Effect::StartUpload { last } => {
                assert!(!self.uploading, "one upload at a time");
                assert!(
                    self.releasing.is_none() && self.ended == 0,
                    "nothing is uploaded after the release began"
                );
                assert_eq!(
                    last,
                    self.state.phase == Phase::Flushing,
                    "the last image is taken with the gate closed"
                );
                self.uploading = true;
                let next = self.waiting.remove("next snapshot").unwrap_or(0);
                *self.waiting.entry("snapshot").or_default() += next;
            }
            Effect::StartForget => {
                assert!(!self.uploading, "a forget waits for the upload");
                self.forgetting = true;
                self.forgets_begun += 1;
            }
            Effect::StartRelease { flushed } => {
                assert!(self.releasing.is_none() && self.released == 0, "a lease is handed back once");
                if flushed {
                    assert_eq!(
                        before.lease,
                        LeaseState::Held,
                        "a flush counts only while the lease is proven"
                    );
                    let clean = matches!(
                        event,
                        Event::Drained { dirty: false }
                            | Event::UploadPublished { dirty: false }
                            | Event::UploadFailed { dirty: false, failure: UploadFailure::Store }
                    );
                    assert!(clean, "{event:?} does not say that everything is in the store");
                }
                self.releasing = Some(flushed);
            }
            Effect::StartResumeCheck => self.checking = true,
            Effect::Settle(waiter, outcome) => {
                if waiter == Waiter::Handoff && outcome == Outcome::Done {
                    assert!(
                        matches!(event, Event::ReleaseEnded { flushed: true }),
                        "a handoff ends well by its release"
                    );
                }
                self.waiting.remove(name(waiter));
            }
            Effect::Tell(Notice::GateClosed) => {
                assert_eq!(before.phase, Phase::Draining, "told once for each drain that ended");
                self.closed = true;
            }
            Effect::Tell(Notice::Released { flushed }) => {
                assert!(!flushed || self.closed, "what was flushed was closed before");
                self.released += 1;
            }
            Effect::Tell(Notice::Forgotten) => assert!(self.state.floor_raised),
            Effect::End => self.ended += 1,
            Effect::ExtendDeadline => {
                assert!(matches!(event, Event::Renewed | Event::StoreAgrees), "{event:?} proves nothing");
            }
            _ => {}
        }
    }

    fn invariants(&mut self, before: State, event: Event) {
        let state = self.state;
        let lets_in = state.refusal().is_none();
        assert_eq!(lets_in, state.phase == Phase::Serving && state.lease == LeaseState::Held);
        assert_eq!(state.upload != Upload::Idle, self.uploading);
        assert!(self.ended <= 1 && self.released <= 1 && self.forgets_begun <= 1);
        assert_eq!(self.ended == 1, state.phase == Phase::Released);
        assert_eq!(state.releasing, self.releasing.is_some());
        if state.phase == Phase::Serving {
            self.closed = false;
        }
        assert!(self.closed || state.phase != Phase::Flushing, "nobody was told that the gate is closed");
        if before.floor_raised {
            assert!(matches!(state.phase, Phase::Forgetting | Phase::Released), "{event:?} undid a forget");
        }
        if before.phase == Phase::Released {
            assert_eq!(state.phase, Phase::Released, "what is over is over");
        }
        if matches!(before.phase, Phase::Abandoning) {
            assert!(matches!(state.phase, Phase::Abandoning | Phase::Released));
        }
        if matches!(state.lease, LeaseState::Lost(_))
            && !matches!(state.phase, Phase::Opening | Phase::Forgetting | Phase::Abandoning)
        {
            assert_eq!(state.phase, Phase::Released, "a lost tenure is over");
        }
        let waits = |what| self.waiting.get(what).copied().unwrap_or(0) > 0;
        if waits("handoff") {
            assert!(
                matches!(state.phase, Phase::Draining | Phase::Flushing),
                "a handoff that is over is settled"
            );
        }
        if waits("abandon") {
            assert!(
                state.phase == Phase::Abandoning || state.releasing,
                "an abandon that is over is settled"
            );
        }
        if waits("forget") {
            assert_eq!(state.phase, Phase::Forgetting, "a forget that is over is settled");
        }
        if waits("next snapshot") {
            // A drain is bounded by its time-out, and ends in an upload either way.
            let coming = self.uploading || state.phase == Phase::Draining;
            assert!(
                coming && state.phase != Phase::Released,
                "an upload is on its way to whoever waits for one"
            );
        }
        if waits("snapshot") {
            assert!(self.uploading);
        }
    }

    /// Lets everything that is under way end.
    fn run_down(&mut self) {
        for _ in 0..16 {
            for action in [
                Move::Open { well: true },
                Move::Drain { dirty: false, in_time: true },
                Move::Upload { failure: None, dirty: false },
                Move::Forget { how: Forgetting::GoesOn },
                Move::Check { agrees: true },
                Move::Release,
            ] {
                self.act(action);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_rules_hold_and_whoever_waits_is_told(actions in prop::collection::vec(moves(), 0..60), opening in any::<bool>()) {
        let mut driven = if opening { Driven::new() } else { Driven::serving() };
        for action in actions {
            driven.act(action);
        }
        driven.run_down();
        prop_assert!(driven.waiting.values().all(|count| *count == 0), "{:?} wait for ever in {:?}", driven.waiting, driven.state);
        prop_assert!(matches!(driven.state.phase, Phase::Serving | Phase::Released), "{:?} goes nowhere", driven.state);
    }
}

/// Two replicas, one row, one clock: the deadline is what keeps them apart.
mod two_tenures {
    use super::*;

    const TTL: u64 = 10;
    const MARGIN: u64 = 2;

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Pass(u64),
        Acquire(usize),
        /// Sent now, executed now, answered now.
        Renew(usize),
        /// Sent and executed now; the answer comes with the next `Answer`.
        RenewSlowly(usize),
        Answer(usize),
        Handoff(usize),
        Write(usize),
    }

    fn acts() -> impl Strategy<Value = Act> {
        prop_oneof![
            (1_u64..6).prop_map(Act::Pass),
            (0_usize..2).prop_map(Act::Acquire),
            (0_usize..2).prop_map(Act::Renew),
            (0_usize..2).prop_map(Act::RenewSlowly),
            (0_usize..2).prop_map(Act::Answer),
            (0_usize..2).prop_map(Act::Handoff),
            (0_usize..2).prop_map(Act::Write),
        ]
    }

    #[derive(Clone, Copy)]
    struct Replica {
        state: State,
        epoch: u64,
        deadline: u64,
        slow: Option<(u64, bool)>,
    }

    impl Replica {
        fn feed(&mut self, event: Event, sent_at: u64) {
            let step = self.state.step(event).expect("legal");
            self.state = step.state;
            for effect in step.effects {
                match effect {
                    Effect::ExtendDeadline => self.deadline = self.deadline.max(sent_at + TTL - MARGIN),
                    Effect::StartResumeCheck => self.feed(Event::StoreAgrees, sent_at),
                    Effect::StartRelease { flushed } => self.feed(Event::ReleaseEnded { flushed }, sent_at),
                    _ => {}
                }
            }
        }

        fn acknowledges(&self, now: u64) -> bool {
            self.state.refusal().is_none() && now < self.deadline
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn at_most_one_owner_acknowledges(acts in prop::collection::vec(acts(), 0..80)) {
            let gone = Replica { state: State { phase: Phase::Released, ..State::opening() }, epoch: 0, deadline: 0, slow: None };
            let mut replicas = [gone, gone];
            // (owner, epoch, expires)
            let mut row: (Option<usize>, u64, u64) = (None, 0, 0);
            let mut now = 1;
            let mut newest_write = 0;
            for act in acts {
                match act {
                    Act::Pass(by) => now += by,
                    Act::Acquire(who) => {
                        let over = replicas[who].state.phase == Phase::Released;
                        if over && (row.0.is_none() || row.2 <= now) {
                            row = (Some(who), row.1 + 1, now + TTL);
                            replicas[who] = Replica { state: State::opening(), epoch: row.1, deadline: now + TTL - MARGIN, slow: None };
                            replicas[who].feed(Event::Opened, now);
                        }
                    }
                    Act::Renew(who) | Act::RenewSlowly(who) if replicas[who].state.renews() && replicas[who].slow.is_none() => {
                        let ours = row.0 == Some(who) && row.1 == replicas[who].epoch;
                        if ours {
                            row.2 = now + TTL;
                        }
                        replicas[who].slow = Some((now, ours));
                        if let Act::Renew(_) = act {
                            answer(&mut replicas[who], now);
                        }
                    }
                    Act::Renew(_) | Act::RenewSlowly(_) => {}
                    Act::Answer(who) => answer(&mut replicas[who], now),
                    Act::Handoff(who) => {
                        let replica = &mut replicas[who];
                        if replica.acknowledges(now) {
                            replica.feed(Event::HandoffAsked, now);
                            replica.feed(Event::Drained { dirty: false }, now);
                            if row.0 == Some(who) && row.1 == replica.epoch {
                                row.0 = None;
                            }
                        }
                    }
                    Act::Write(who) => {
                        if replicas[who].acknowledges(now) {
                            prop_assert!(replicas[who].epoch >= newest_write, "an older epoch acknowledged after a newer one");
                            newest_write = replicas[who].epoch;
                        }
                    }
                }
                prop_assert!(!(replicas[0].acknowledges(now) && replicas[1].acknowledges(now)), "both acknowledge at {now}");
            }
        }
    }

    fn answer(replica: &mut Replica, now: u64) {
        if let Some((sent_at, granted)) = replica.slow.take() {
            let event = match (granted, now < replica.deadline) {
                (true, true) => Event::Renewed,
                (true, false) => Event::RenewedLate,
                (false, _) => Event::RenewRefused,
            };
            replica.feed(event, sent_at);
        }
    }
}

fn step(state: State, event: Event) -> (State, Vec<Effect>, Answer) {
    let step = state.step(event).unwrap();
    (step.state, step.effects, step.answer)
}

fn serving() -> State {
    step(State::opening(), Event::Opened).0
}

#[test]
fn what_cannot_happen_is_refused_by_name() {
    for (state, event) in [
        (State::opening(), Event::HandoffAsked),
        (State::opening(), Event::SnapshotAsked { dirty: true }),
        (serving(), Event::Opened),
        (serving(), Event::UploadPublished { dirty: false }),
        (serving(), Event::Forgotten),
        (serving(), Event::ReleaseEnded { flushed: true }),
    ] {
        let illegal = state.step(event).unwrap_err();
        assert_eq!((illegal.state, illegal.event), (state, event));
        let name = format!("{event:?}");
        assert!(illegal.to_string().starts_with(&name), "{illegal}");
    }
}

#[test]
fn the_loss_of_the_lease_settles_a_handoff_by_where_it_stands() {
    let draining = step(serving(), Event::HandoffAsked).0;
    let (_, effects, _) = step(draining, Event::RenewRefused);
    assert!(effects.contains(&Effect::Settle(Waiter::Handoff, Outcome::Refused(Refusal::Draining))));
    let flushing = step(draining, Event::Drained { dirty: true }).0;
    let (state, effects, _) = step(flushing, Event::RenewRefused);
    let fenced = Refusal::Fenced(FencedReason::Lost);
    assert!(effects.contains(&Effect::Settle(Waiter::Handoff, Outcome::Refused(fenced))));
    assert_eq!(state.refusal(), Some(fenced));
}

#[test]
fn a_forget_that_raised_its_floor_does_not_heed_a_loss() {
    let forgetting = step(serving(), Event::ForgetAsked).0;
    let raised = step(forgetting, Event::FloorRaised).0;
    assert_eq!(step(raised, Event::RenewRefused).0, raised);
    let (releasing, effects, _) = step(raised, Event::Forgotten);
    assert_eq!(effects, [Effect::Tell(Notice::Forgotten), Effect::StartRelease { flushed: false }]);
    let (over, ..) = step(releasing, Event::ReleaseEnded { flushed: false });
    assert_eq!(over.phase, Phase::Released);
}

#[test]
fn a_lapsed_lease_serves_on_once_the_row_and_the_store_agree() {
    let lapsed = step(serving(), Event::DeadlinePassed).0;
    assert_eq!(lapsed.refusal(), Some(Refusal::Fenced(FencedReason::Lapsed)));
    let (asked, effects, _) = step(lapsed, Event::RenewedLate);
    assert_eq!((asked, effects.as_slice()), (lapsed, [Effect::StartResumeCheck].as_slice()));
    assert_eq!(step(asked, Event::StoreAgrees).0.refusal(), None);
    let (over, ..) = step(asked, Event::StoreDisagrees(FencedReason::Sealed));
    assert_eq!(over.refusal(), Some(Refusal::Fenced(FencedReason::Sealed)));
}

#[test]
fn an_opening_whose_lease_is_lost_meanwhile_never_serves() {
    let lost = step(State::opening(), Event::RenewRefused).0;
    let (state, effects, _) = step(lost, Event::Opened);
    assert_eq!(state.phase, Phase::Abandoning);
    assert!(effects.contains(&Effect::StartRelease { flushed: false }));
}
