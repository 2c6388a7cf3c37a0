//! What a blob store did with probes.

use leasehold_blob::Put;

use crate::doctor::{check::Check, facts::Probed, finding::Finding};

/// The checks of one store, by what they look at.
pub(super) struct Names {
    put_if_absent: Check,
    read: Check,
    list: Check,
    delete: Check,
    gone: Check,
    cleanup: Check,
}

/// The embedded pair's.
pub(super) const STORE: Names = Names {
    put_if_absent: Check::StorePutIfAbsent,
    read: Check::StoreRead,
    list: Check::StoreList,
    delete: Check::StoreDelete,
    gone: Check::StoreGone,
    cleanup: Check::StoreCleanup,
};

/// The cloud pair's.
pub(super) const CONTAINER: Names = Names {
    put_if_absent: Check::ContainerPutIfAbsent,
    read: Check::ContainerRead,
    list: Check::ContainerList,
    delete: Check::ContainerDelete,
    gone: Check::ContainerGone,
    cleanup: Check::ContainerCleanup,
};

const OTHER_STORE: &str = "use another store: on this one two owners would both believe that they published";
const NO_ERASURE: &str =
    "use another store, or give our identity the right to delete: a forget would not be an erasure";

pub(super) fn judge(facts: &Probed, names: &Names) -> [Finding; 6] {
    let prefix = &facts.prefix;
    [
        put_if_absent(facts, names.put_if_absent),
        facts.reads_first.judged(names.read, |is_first| {
            if *is_first {
                Finding::ok(names.read, "a read gives what was put")
            } else {
                Finding::fail(names.read, "a read does not give what the first put wrote", OTHER_STORE)
            }
        }),
        facts.lists.judged(names.list, |is_listed| {
            if *is_listed {
                Finding::ok(names.list, "a listing shows what was put")
            } else {
                let next = "use another store: snapshots that are not listed are not found";
                Finding::fail(names.list, "a listing does not show what was put", next)
            }
        }),
        facts.deletes.judged(names.delete, |was_there| {
            if *was_there {
                Finding::ok(names.delete, "a delete deletes")
            } else {
                Finding::fail(names.delete, "a delete says that there was nothing", NO_ERASURE)
            }
        }),
        facts.is_gone.judged(names.gone, |is_gone| {
            if *is_gone {
                Finding::ok(names.gone, "neither a read nor a listing finds what was deleted")
            } else {
                Finding::fail(names.gone, "what was deleted is still found", NO_ERASURE)
            }
        }),
        match facts.cleaned.judged(names.cleanup, |_| Finding::ok(names.cleanup, "no probe is left")) {
            failed @ Finding { next: Some(_), .. } => {
                let next = format!("remove what lies under {prefix} by hand; no tenant can have that name");
                Finding { next: Some(next), ..failed }
            }
            other => other,
        },
    ]
}

fn put_if_absent(facts: &Probed, check: Check) -> Finding {
    facts.puts.judged(check, |puts| match puts {
        (Put::Exists, _) => Finding::fail(check, "a name that nobody has used is said to exist", OTHER_STORE),
        (_, Put::Created) => Finding::fail(check, "a second put of a name is not refused", OTHER_STORE),
        (Put::Created, Put::Exists) => facts.created_at_once.judged(check, |created| match created {
            1 => {
                Finding::ok(check, "a second put of a name is refused, and of several at once one creates it")
            }
            other => {
                let found = format!("of several puts of a name at once {other} created it, where one must");
                Finding::fail(check, found, OTHER_STORE)
            }
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        fact::Fact,
        finding::Verdict,
        judge::samples::{about, assert_says, failed, probed},
    };

    fn finding(check: Check, spoil: impl FnOnce(&mut Probed)) -> Finding {
        let mut facts = probed();
        spoil(&mut facts);
        about(&judge(&facts, &CONTAINER), check).clone()
    }

    #[test]
    fn a_name_is_taken_once() {
        let check = Check::ContainerPutIfAbsent;
        for (first, second, at_once, verdict, part) in [
            (Put::Created, Put::Exists, 1, Verdict::Ok, "refused"),
            (Put::Created, Put::Created, 1, Verdict::Fail, "is not refused"),
            (Put::Exists, Put::Exists, 1, Verdict::Fail, "nobody has used"),
            (Put::Created, Put::Exists, 2, Verdict::Fail, "at once 2 created it"),
            (Put::Created, Put::Exists, 0, Verdict::Fail, "at once 0 created it"),
        ] {
            let found = finding(check, |facts| {
                facts.puts = Fact::Known((first, second));
                facts.created_at_once = Fact::Known(at_once);
            });
            assert_says(&found, verdict, part);
        }
        assert_says(&finding(check, |facts| facts.puts = failed()), Verdict::Fail, "it burns");
        assert_says(&finding(check, |facts| facts.created_at_once = failed()), Verdict::Fail, "it burns");
    }

    #[test]
    fn what_was_put_is_there_until_it_is_deleted() {
        for (check, part) in [
            (Check::ContainerRead, "first put wrote"),
            (Check::ContainerList, "does not show"),
            (Check::ContainerDelete, "there was nothing"),
            (Check::ContainerGone, "still found"),
        ] {
            assert_says(&finding(check, |_| {}), Verdict::Ok, "");
            let spoilt = finding(check, |facts| {
                let none = Fact::Known(false);
                match check {
                    Check::ContainerRead => facts.reads_first = none,
                    Check::ContainerList => facts.lists = none,
                    Check::ContainerDelete => facts.deletes = none,
                    _ => facts.is_gone = none,
                }
            });
            assert_says(&spoilt, Verdict::Fail, part);
        }
    }

    #[test]
    fn what_is_left_is_named() {
        assert_says(&finding(Check::ContainerCleanup, |_| {}), Verdict::Ok, "no probe");
        let left = finding(Check::ContainerCleanup, |facts| facts.cleaned = failed());
        assert_says(&left, Verdict::Fail, "under _doctor/1/ by hand");
        let names = judge(&probed(), &STORE).map(|finding| finding.check.id());
        assert!(names.iter().all(|name| name.starts_with("store.")), "{names:?}");
    }
}
