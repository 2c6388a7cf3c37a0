//! Appending: positions, atomic batches, idempotency keys, groups.

use leasehold_ledger::{Appended, DerivedKey, EventQuery, LedgerError, NewEvent};
use leasehold_types::{ErrorCode, Refusal, Timestamp};

use crate::fixture::{World, at, event, json, keyed, open};

#[test]
fn events_are_numbered_from_one_in_the_epoch_that_wrote_them() {
    let world = World::new();
    assert_eq!(world.ledger.position(), at(1, 0));
    let appended = world.ledger.append(&world.gate, &[event("a"), event("b")]).unwrap();
    assert_eq!(
        appended,
        [
            Appended { position: at(1, 1), duplicate: false },
            Appended { position: at(1, 2), duplicate: false }
        ]
    );
    assert_eq!(world.ledger.position(), at(1, 2));

    let path = world.ledger.path().to_owned();
    drop(world.ledger);
    let next = open(&path, 4);
    assert_eq!((next.position(), next.is_dirty()), (at(1, 2), false), "opening is no write");
    next.append(&world.gate, &[event("c")]).unwrap();
    assert_eq!((next.position(), next.is_dirty()), (at(4, 3), true));
}

#[test]
fn an_event_comes_back_as_it_was_appended() {
    let world = World::new();
    let new = NewEvent {
        kind: "note".into(),
        actor: "ann".into(),
        subject_id: Some("s-1".into()),
        payload: json("{\"b\": 1.00, \"a\": [12345678901234567890123]}"),
        idem_key: Some("key".into()),
        run_id: Some("r-1".into()),
        ts: Some(Timestamp::from_millis(5)),
        derived: None,
    };
    world.ledger.append(&world.gate, &[new.clone(), event("plain")]).unwrap();
    let page = world.ledger.events(&world.gate, &EventQuery::default()).unwrap();
    let first = &page.events[0];
    assert_eq!((first.position, first.ts), (at(1, 1), Timestamp::from_millis(5)));
    assert_eq!((&first.kind, &first.actor, &first.payload), (&new.kind, &new.actor, &new.payload));
    assert_eq!(
        (&first.subject_id, &first.idem_key, &first.run_id),
        (&new.subject_id, &new.idem_key, &new.run_id)
    );
    let second = &page.events[1];
    assert_eq!(second.ts, Timestamp::from_millis(1_790_000_000_000), "by the clock when it has none");
    assert_eq!((second.payload.as_str(), &second.idem_key), ("null", &None));
}

#[test]
fn a_known_key_answers_the_first_event() {
    let world = World::new();
    let first = keyed("a", "k").with_payload(json("{\"x\":1,\"y\":2}"));
    world.ledger.append(&world.gate, &[event("before"), first.clone()]).unwrap();

    let again = NewEvent {
        ts: Some(Timestamp::from_millis(1)),
        ..keyed("a", "k").with_payload(json(" {\"y\":2, \"x\":1}"))
    };
    let answer = world.ledger.append(&world.gate, &[event("between"), again]).unwrap();
    assert_eq!(answer[1], Appended { position: at(1, 2), duplicate: true });
    assert_eq!(world.kinds(), ["before", "a", "between"]);

    let error = world.ledger.append(&world.gate, &[event("lost"), keyed("b", "k")]).unwrap_err();
    assert!(
        matches!(&error, LedgerError::IdempotencyMismatch { key, first: Some(first) } if key == "k" && *first == at(1, 2))
    );
    assert_eq!(error.code(), ErrorCode::IdempotencyMismatch);
    assert_eq!(world.kinds(), ["before", "a", "between"], "a batch is all or nothing");
    assert_eq!(world.ledger.position(), at(1, 3));
}

#[test]
fn a_key_is_known_to_later_epochs_and_within_its_batch() {
    let world = World::new();
    let twice = world.ledger.append(&world.gate, &[keyed("a", "k"), keyed("a", "k")]).unwrap();
    assert_eq!((twice[0].duplicate, twice[1].duplicate, twice[1].position), (false, true, at(1, 1)));
    let path = world.ledger.path().to_owned();
    drop(world.ledger);
    let next = open(&path, 2);
    let later = next.append(&world.gate, &[keyed("a", "k")]).unwrap();
    assert_eq!(later, [Appended { position: at(1, 1), duplicate: true }]);
}

#[test]
fn a_bad_group_costs_the_others_nothing() {
    let world = World::new();
    world.ledger.append(&world.gate, &[keyed("a", "k")]).unwrap();
    let groups = [
        vec![event("b"), event("c")],
        vec![event("lost"), keyed("other", "k")],
        vec![event("")],
        vec![],
        vec![keyed("a", "k")],
        vec![event("d")],
    ];
    let answers = world.ledger.append_groups(&world.gate, &groups);
    let codes: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().map(Vec::len).map_err(LedgerError::code)).collect();
    assert_eq!(
        codes,
        [
            Ok(2),
            Err(ErrorCode::IdempotencyMismatch),
            Err(ErrorCode::InvalidArgument),
            Err(ErrorCode::InvalidArgument),
            Ok(1),
            Ok(1)
        ]
    );
    assert_eq!(world.kinds(), ["a", "b", "c", "d"]);
}

#[test]
fn an_append_that_waits_for_nobody_is_done_at_once_or_not_at_all() {
    let world = World::new();
    let now = || world.ledger.append_if_free(&world.gate, &[event("a")]);
    assert_eq!(now().expect("nobody writes").unwrap()[0].position, at(1, 1));
    world
        .ledger
        .run(&world.gate, |view| {
            assert!(now().is_none(), "this very thread has the writer");
            std::thread::scope(|scope| {
                assert!(scope.spawn(|| now().is_none()).join().unwrap(), "another thread has it");
            });
            view.append(&[event("b")])
        })
        .unwrap();
    assert_eq!(world.kinds(), ["a", "b"]);
    world.switch.close_after(0, Refusal::Draining);
    let refused = now().expect("it is refused at once").unwrap_err();
    assert_eq!((refused.code(), refused.outcome_unknown()), (ErrorCode::Draining, false));
    world.switch.open();
    world.ledger.close();
    assert!(matches!(now(), Some(Err(LedgerError::Closed { .. }))));
}

#[test]
fn the_first_group_of_a_tenure_that_fails_leaves_no_mark() {
    let world = World::new();
    let answers =
        world.ledger.append_groups(&world.gate, &[vec![keyed("a", "k"), keyed("b", "k")], vec![event("c")]]);
    assert!(answers[0].is_err() && answers[1].is_ok());
    assert_eq!((world.kinds(), world.ledger.position()), (vec!["c".to_owned()], at(1, 1)));
    world.ledger.check_position(&world.gate, at(1, 1)).unwrap();
}

#[test]
fn a_gate_that_closes_after_the_commit_is_told_to_every_group_that_had_succeeded() {
    let world = World::new();
    let before = world.switch.asked();
    world.ledger.append_groups(&world.gate, &[vec![event("a")]]);
    let passes = world.switch.asked() - before;
    world.switch.close_after(passes - 1, Refusal::Draining);
    let answers = world.ledger.append_groups(&world.gate, &[vec![event("b")], vec![event("")]]);
    // One question more: the second group's.
    assert!(answers.iter().all(|answer| !answer.as_ref().unwrap_err().outcome_unknown()));
    world.switch.open();
    assert_eq!(world.kinds(), ["a"], "refused before the commit");

    world.switch.close_after(passes, Refusal::Draining);
    let answers = world.ledger.append_groups(&world.gate, &[vec![event("b")], vec![event("")]]);
    assert!(answers[0].as_ref().unwrap_err().outcome_unknown());
    assert_eq!(answers[0].as_ref().unwrap_err().code(), ErrorCode::Draining);
    assert_eq!(answers[1].as_ref().unwrap_err().code(), ErrorCode::InvalidArgument);
    world.switch.open();
    assert_eq!((world.kinds(), world.ledger.position()), (vec!["a".to_owned(), "b".to_owned()], at(1, 2)));
}

#[test]
fn what_is_no_event_is_refused_and_changes_nothing() {
    let world = World::new();
    let text = |len: usize| Some("x".repeat(len));
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    for (bad, code) in [
        (event(""), ErrorCode::InvalidArgument),
        (event(&"x".repeat(129)), ErrorCode::InvalidArgument),
        (event("a\0b"), ErrorCode::InvalidArgument),
        (NewEvent::new("a", ""), ErrorCode::InvalidArgument),
        (NewEvent::new("a", "x".repeat(257)), ErrorCode::InvalidArgument),
        (NewEvent { subject_id: text(0), ..event("a") }, ErrorCode::InvalidArgument),
        (NewEvent { run_id: text(257), ..event("a") }, ErrorCode::InvalidArgument),
        (NewEvent { idem_key: text(257), ..event("a") }, ErrorCode::InvalidArgument),
        (event("a").with_payload(json(&deep)), ErrorCode::InvalidArgument),
        (event("a").with_payload(json(&format!("\"{}\"", "x".repeat(256 * 1024)))), ErrorCode::TooLarge),
    ] {
        let error = world.ledger.append(&world.gate, &[event("good"), bad]).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    assert_eq!(world.ledger.append(&world.gate, &[]).unwrap_err().code(), ErrorCode::InvalidArgument);
    let many = vec![event("a"); 1_001];
    assert_eq!(world.ledger.append(&world.gate, &many).unwrap_err().code(), ErrorCode::TooLarge);
    let heavy = vec![event("a").with_payload(json(&format!("\"{}\"", "x".repeat(200 * 1024)))); 42];
    assert_eq!(world.ledger.append(&world.gate, &heavy).unwrap_err().code(), ErrorCode::TooLarge);
    assert_eq!((world.ledger.position(), world.ledger.is_dirty()), (at(1, 0), false));
    let edge = NewEvent { idem_key: text(256), subject_id: text(256), ..event(&"x".repeat(128)) };
    world.ledger.append(&world.gate, &[edge]).unwrap();
}

#[test]
fn a_key_of_a_batch_stands_for_all_of_it_and_nothing_else() {
    let world = World::new();
    let named = |key: &str, kinds: &[&str], is_list: bool| {
        let mut batch: Vec<NewEvent> = kinds.iter().map(|kind| event(kind)).collect();
        DerivedKey::name_each(key, &mut batch, is_list);
        world.ledger.append(&world.gate, &batch)
    };
    assert_eq!(named("k", &["a", "b"], true).unwrap().len(), 2);
    assert!(named("k", &["a", "b"], true).unwrap().iter().all(|one| one.duplicate));
    assert!(!named("one", &["a"], false).unwrap()[0].duplicate);
    assert!(named("one", &["a"], false).unwrap()[0].duplicate);
    for (key, kinds, is_list) in [
        ("k", &["a", "b", "c"][..], true),
        ("k", &["a"], true),
        ("k", &["a"], false),
        ("k", &["b", "a"], true),
        ("one", &["a"], true),
        ("one", &["a", "b"], true),
    ] {
        match named(key, kinds, is_list) {
            Err(LedgerError::IdempotencyMismatch { key: told, first: Some(_) }) => {
                assert!(told.starts_with(key));
            }
            other => panic!("{key} {kinds:?}: {other:?}"),
        }
    }
    assert_eq!(world.ledger.position(), at(1, 3), "nothing of what was refused is kept");
}
