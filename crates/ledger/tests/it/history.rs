//! Reading events, and positions of a tail that was lost.

use leasehold_ledger::{EventPage, EventQuery, Held, LedgerError, LedgerOptions, Limits, NewEvent, install};
use leasehold_types::{ErrorCode, Position};

use crate::fixture::{World, at, event, json, open};

fn read(world: &World, query: &EventQuery) -> EventPage {
    world.ledger.events(&world.gate, query).unwrap()
}

fn seqs(page: &EventPage) -> Vec<u64> {
    page.events.iter().map(|event| event.position.seq).collect()
}

#[test]
fn pages_follow_each_other_to_the_end() {
    let world = World::new();
    let empty = read(&world, &EventQuery::default());
    assert_eq!(empty, EventPage { events: vec![], next: None, has_more: false, held: Held::default() });
    world.append(&["a", "b", "c", "d", "e"]);
    let first = read(&world, &EventQuery { limit: 2, ..EventQuery::default() });
    assert_eq!((seqs(&first), first.next, first.has_more), (vec![1, 2], Some(at(1, 2)), true));
    let last = read(&world, &EventQuery { after: first.next, limit: 3, ..EventQuery::default() });
    assert_eq!((seqs(&last), last.next, last.has_more), (vec![3, 4, 5], Some(at(1, 5)), false));
    let none = read(&world, &EventQuery { after: last.next, ..EventQuery::default() });
    assert_eq!((seqs(&none), none.next, none.has_more), (vec![], Some(at(1, 5)), false));
}

#[test]
fn filters_choose_and_next_moves_past_what_they_leave_out() {
    let world = World::new();
    let about = |kind: &str, subject: &str| NewEvent { subject_id: Some(subject.into()), ..event(kind) };
    let batch = [about("a", "x"), about("b", "x"), about("a", "y"), about("b", "y"), event("c")];
    world.ledger.append(&world.gate, &batch).unwrap();
    let kind = |kind: &str| EventQuery { kind: Some(kind.into()), ..EventQuery::default() };
    let page = read(&world, &kind("a"));
    assert_eq!((seqs(&page), page.next, page.has_more), (vec![1, 3], Some(at(1, 5)), false));
    let subject = EventQuery { subject_id: Some("y".into()), ..EventQuery::default() };
    assert_eq!(seqs(&read(&world, &subject)), [3, 4]);
    assert_eq!(seqs(&read(&world, &EventQuery { kind: Some("b".into()), ..subject })), [4]);
    let page = read(&world, &kind("none"));
    assert_eq!((page.events.len(), page.next), (0, Some(at(1, 5))));
    let page = read(&world, &EventQuery { limit: 1, ..kind("a") });
    assert_eq!((seqs(&page), page.next, page.has_more), (vec![1], Some(at(1, 1)), true));
}

#[test]
fn a_page_is_bounded_in_rows_and_bytes() {
    let limits = Limits { rows_max: 3, result_bytes_max: 10_000, ..Limits::default() };
    let world = World::with(LedgerOptions { limits, ..LedgerOptions::default() });
    let big = event("a").with_payload(json(&format!("\"{}\"", "x".repeat(6_000))));
    world.ledger.append(&world.gate, &[big.clone(), big.clone(), big]).unwrap();
    let query = |limit| EventQuery { limit, ..EventQuery::default() };
    let page = read(&world, &query(3));
    assert_eq!((seqs(&page), page.has_more), (vec![1], true), "cut by bytes, never below one event");
    let refused = |limit| world.ledger.events(&world.gate, &query(limit)).unwrap_err().code();
    assert_eq!((refused(0), refused(4)), (ErrorCode::InvalidArgument, ErrorCode::TooLarge));
}

/// Epoch 1 wrote 1 to 3, published, and lost 4 and 5; epoch 3 wrote 4 on top of the image; epoch 2 wrote nothing that
/// lasted.
#[test]
fn a_position_of_a_lost_tail_is_told_the_last_common_one() {
    let world = World::new();
    world.append(&["a", "b", "c"]);
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    world.append(&["lost", "lost too"]);
    install(&image.path, world.ledger.path()).unwrap();
    let next = open(world.ledger.path(), 3);
    assert_eq!(next.position(), at(1, 3));

    let asked = |position: Position| next.check_position(&world.gate, position);
    let rewound = |position: Position| match asked(position).unwrap_err() {
        LedgerError::HistoryRewound { asked, last_common } => {
            assert_eq!(asked, position);
            last_common
        }
        other => panic!("{other}"),
    };
    // Before the new epoch has written, its own positions are told by its end.
    assert_eq!(rewound(at(1, 5)), at(1, 3));
    asked(at(1, 3)).unwrap();
    next.append(&world.gate, &[event("d")]).unwrap();
    for position in [at(1, 0), at(1, 3), at(2, 3), at(3, 2), at(3, 4), at(9, 4)] {
        asked(position).unwrap();
    }
    for (position, last_common) in
        [(at(1, 4), at(1, 3)), (at(1, 5), at(1, 3)), (at(2, 4), at(1, 3)), (at(3, 5), at(3, 4))]
    {
        assert_eq!(rewound(position), last_common, "{position}");
        let query = EventQuery { after: Some(position), ..EventQuery::default() };
        assert_eq!(next.events(&world.gate, &query).unwrap_err().code(), ErrorCode::HistoryRewound);
    }
    let page =
        next.events(&world.gate, &EventQuery { after: Some(at(1, 2)), ..EventQuery::default() }).unwrap();
    assert_eq!(
        page.events.iter().map(|event| event.position).collect::<Vec<_>>(),
        [at(1, 3), at(3, 4)],
        "each with the epoch that wrote it"
    );
}

#[test]
fn an_empty_history_knows_only_its_beginning() {
    let world = World::new();
    world.ledger.check_position(&world.gate, at(1, 0)).unwrap();
    let error = world.ledger.check_position(&world.gate, at(1, 1)).unwrap_err();
    assert!(matches!(error, LedgerError::HistoryRewound { last_common, .. } if last_common == at(1, 0)));
}
