//! What an abandoned or lost tenure left.

use std::{fs, os::unix::fs::MetadataExt as _};

use leasehold_ledger::{LedgerError, SALVAGES_MAX, install, ledger_path, salvage, salvages, verify_file};
use leasehold_types::ErrorCode;

use crate::fixture::{World, at, epoch, kinds, open};

#[test]
fn what_a_crash_left_is_kept_with_its_log() {
    let world = World::new();
    world.append(&["a", "b"]);
    let root = world.dir.path();
    drop(world.ledger);
    let entry = salvage(root, "e00000001-crash").unwrap().unwrap();
    assert_eq!(entry, root.join("salvage/e00000001-crash"));
    fs::remove_file(ledger_path(root)).unwrap();
    let found = salvages(root).unwrap();
    assert_eq!((found.len(), &*found[0].name, found[0].epoch), (1, "e00000001-crash", Some(epoch(1))));
    assert!(found[0].bytes > 4096 && found[0].at.as_millis() > 1_700_000_000_000);
    let to = root.join("export.db");
    assert_eq!(found[0].export(&to).unwrap().position, Some(at(1, 2)), "the log counts");
    assert_eq!(kinds(&open(&to, 2), &world.gate), ["a", "b"]);
    assert_eq!(found[0].export(&to).unwrap_err().code(), ErrorCode::LocalIo, "a file is never replaced");
    assert!(to.exists());
}

#[test]
fn nothing_and_nothing_worth_keeping_is_none() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(salvage(dir.path(), "x").unwrap(), None);
    assert_eq!(salvages(dir.path()).unwrap(), []);
    fs::write(ledger_path(dir.path()), "").unwrap();
    assert_eq!(salvage(dir.path(), "x").unwrap(), None);
}

#[test]
fn p3_what_a_live_owner_has_open_gets_no_link() {
    let world = World::new();
    world.append(&["a"]);
    assert_eq!(salvage(world.dir.path(), "x").unwrap(), None);
    assert_eq!(fs::metadata(world.ledger.path()).unwrap().nlink(), 1);
    world.ledger.close();
    assert!(salvage(world.dir.path(), "x").unwrap().is_some(), "closed, it is one that was left");
}

#[test]
fn a_live_ledger_is_linked_while_it_is_on_its_path_and_copied_afterwards() {
    let world = World::new();
    world.append(&["a"]);
    let root = world.dir.path();
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    world.append(&["b"]);
    let linked = world.ledger.salvage(root, "e00000001-abandoned").unwrap();
    assert_eq!(fs::metadata(ledger_path(&linked)).unwrap().nlink(), 2);

    install(&image.path, world.ledger.path()).unwrap();
    let successor = open(world.ledger.path(), 2);
    let copied = world.ledger.salvage(root, "e00000001-lost").unwrap();
    assert_eq!(verify_file(&ledger_path(&copied)).unwrap().position, Some(at(1, 2)));
    assert_eq!(kinds(&successor, &world.gate), ["a"]);
    world.ledger.close();
    let error = world.ledger.salvage(root, "late").unwrap_err();
    assert!(matches!(error, LedgerError::Closed { .. }));
    assert_eq!(salvages(root).unwrap().len(), 2, "what failed leaves nothing");
    let linked =
        salvages(root).unwrap().into_iter().find(|entry| entry.name == "e00000001-abandoned").unwrap();
    assert_eq!(linked.export(&world.path("export.db")).unwrap().position, Some(at(1, 2)));
}

#[test]
fn a_bounded_number_is_kept_and_names_do_not_collide() {
    let world = World::new();
    world.append(&["a"]);
    for _ in 0..SALVAGES_MAX + 3 {
        world.ledger.salvage(world.dir.path(), "same").unwrap();
    }
    assert_eq!(salvages(world.dir.path()).unwrap().len(), SALVAGES_MAX);
    for label in ["", "..", "a/b", "A", "a b", &"x".repeat(101)] {
        let error = world.ledger.salvage(world.dir.path(), label).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{label}");
        assert_eq!(salvage(world.dir.path(), label).unwrap_err().code(), ErrorCode::InvalidArgument);
    }
}
