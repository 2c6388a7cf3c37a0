//! Appends against a model: a list of events and a map of keys, across groups, epochs, crashes and images.

use std::collections::BTreeMap;

use leasehold_ledger::{Appended, LedgerError, LedgerOptions, NewEvent, install, ledger_path};
use leasehold_types::Position;
use proptest::prelude::*;

use crate::fixture::{World, at, event, open};

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Vec<(u8, Option<u8>)>>),
    /// The ledger is closed and opened by the next epoch, with nothing lost.
    Reopen,
    /// An image is taken and published.
    Publish,
    /// The next epoch starts from the published image.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few contents and fewer keys, so that duplicates and mismatches are common.
    let event = (0..3_u8, proptest::option::of(0..4_u8));
    let groups = proptest::collection::vec(proptest::collection::vec(event, 0..4), 1..4);
    let step = prop_oneof![
        6 => groups.prop_map(Step::Append),
        1 => Just(Step::Reopen),
        1 => Just(Step::Publish),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..12)
}

#[derive(Clone, Debug, Default)]
struct Model {
    /// The kind and the epoch of each event.
    events: Vec<(u8, u64)>,
    keys: BTreeMap<u8, (u8, Position)>,
}

impl Model {
    /// What appending a group answers: `None` for a refusal, which changes nothing.
    fn append(&mut self, epoch: u64, group: &[(u8, Option<u8>)]) -> Option<Vec<Appended>> {
        let mut next = self.clone();
        let mut answer = Vec::new();
        for (kind, key) in group {
            let known = key.and_then(|key| next.keys.get(&key).copied());
            match known {
                Some((first, position)) if first == *kind => {
                    answer.push(Appended { position, duplicate: true });
                }
                Some(_) => return None,
                None => {
                    next.events.push((*kind, epoch));
                    let position = at(epoch, next.events.len() as u64);
                    next.keys.extend(key.map(|key| (key, (*kind, position))));
                    answer.push(Appended { position, duplicate: false });
                }
            }
        }
        if group.is_empty() {
            return None;
        }
        *self = next;
        Some(answer)
    }
}

fn new_event((kind, key): (u8, Option<u8>)) -> NewEvent {
    NewEvent { idem_key: key.map(|key| format!("key-{key}")), ..event(&format!("kind-{kind}")) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn appends_do_what_the_model_does(steps in steps()) {
        let World { dir, gate, mut ledger, .. } = World::with(LedgerOptions::default());
        let path = ledger_path(dir.path());
        let mut epoch = 1;
        let mut model = Model::default();
        let mut published: Option<(Model, std::path::PathBuf)> = None;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(groups) => {
                    let batches: Vec<Vec<NewEvent>> =
                        groups.iter().map(|group| group.iter().copied().map(new_event).collect()).collect();
                    let answers = ledger.append_groups(&gate, &batches);
                    for (group, answer) in groups.iter().zip(answers) {
                        prop_assert_eq!(answer.ok(), model.append(epoch, group));
                    }
                }
                Step::Publish => {
                    let image = ledger.take_image(&dir.path().join(format!("image-{number}.db"))).unwrap();
                    ledger.mark_published(&image);
                    prop_assert!(!ledger.is_dirty());
                    published = Some((model.clone(), image.path));
                }
                Step::Reopen => {
                    drop(ledger);
                    epoch += 1;
                    ledger = open(&path, epoch);
                }
                Step::Crash => {
                    drop(ledger);
                    epoch += 1;
                    if let Some((then, image)) = &published {
                        model = then.clone();
                        let copy = dir.path().join("restore.db");
                        std::fs::copy(image, &copy).unwrap();
                        install(&copy, &path).unwrap();
                    } else {
                        model = Model::default();
                        leasehold_ledger::remove_files(&path).unwrap();
                    }
                    ledger = open(&path, epoch);
                }
            }
            let last = model.events.last().map_or(at(epoch, 0), |(_, wrote)| at(*wrote, model.events.len() as u64));
            prop_assert_eq!(ledger.position(), last);
            let page = ledger.events(&gate, &leasehold_ledger::EventQuery { limit: 1_000, ..Default::default() }).unwrap();
            let found: Vec<(String, Position)> = page.events.into_iter().map(|event| (event.kind, event.position)).collect();
            let expected: Vec<(String, Position)> = model
                .events
                .iter()
                .enumerate()
                .map(|(index, (kind, wrote))| (format!("kind-{kind}"), at(*wrote, index as u64 + 1)))
                .collect();
            prop_assert_eq!(found, expected);
            let beyond = at(epoch, model.events.len() as u64 + 1);
            let rewound = ledger.check_position(&gate, beyond);
            prop_assert!(matches!(rewound, Err(LedgerError::HistoryRewound { last_common, .. }) if last_common == last), "{rewound:?}");
            prop_assert!(ledger.check_position(&gate, last).is_ok());
        }
    }
}
