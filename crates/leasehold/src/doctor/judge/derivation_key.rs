//! The key by which tenant ids are derived.

use crate::doctor::{
    check::Check,
    facts::{DerivationKeyFacts, KeyFile},
    finding::Finding,
};

const OTHERS_WRITE: u32 = 0o022;
const OTHERS_READ: u32 = 0o004;

pub(super) fn judge(facts: &DerivationKeyFacts, is_cloud: bool) -> [Finding; 3] {
    [file(facts, is_cloud), mode(facts, is_cloud), bound(facts, is_cloud)]
}

/// Whether the first start makes the key. A fleet's replicas share one, so none of them does.
fn is_made_at_start(facts: &DerivationKeyFacts, is_cloud: bool) -> bool {
    let is_unbound = facts.bound_to.known() == Some(&None);
    !is_cloud && is_unbound && facts.file.known() == Some(&KeyFile::Missing)
}

fn file(facts: &DerivationKeyFacts, is_cloud: bool) -> Finding {
    let check = Check::DerivationKeyFile;
    let path = facts.path.display();
    let kept = facts.bound_to.known().and_then(Option::as_deref);
    facts.file.judged(check, |file| match (file, kept) {
        (KeyFile::Key { fingerprint, .. }, _) => Finding::ok(check, format!("{path} holds key {fingerprint}")),
        (KeyFile::Invalid, _) => {
            let found = format!("{path} does not hold a key: 64 hexadecimal digits");
            Finding::fail(check, found, "bring back the key that the other replicas have")
        }
        (KeyFile::Missing, Some(kept)) => Finding::fail(
            check,
            format!("{path} is not there, and the leases belong to key {kept}: a new key would orphan every tenant"),
            "bring back the key that the other replicas have",
        ),
        (KeyFile::Missing, None) if is_cloud => Finding::fail(
            check,
            format!("{path} is not there: the replicas of a fleet share one key, so none of them makes it"),
            format!("make it once and give every replica the file (`derivation_key_file`): openssl rand -hex 32 > {path}"),
        ),
        (KeyFile::Missing, None) if is_made_at_start(facts, is_cloud) => {
            Finding::ok(check, format!("{path} is not there yet: the first start makes it"))
        }
        (KeyFile::Missing, None) => {
            Finding::skipped(check, format!("{path} is not there, and whether the leases belong to a key is not known"))
        }
    })
}

fn mode(facts: &DerivationKeyFacts, is_cloud: bool) -> Finding {
    let check = Check::DerivationKeyMode;
    let path = facts.path.display();
    facts.file.judged(check, |file| match file {
        KeyFile::Missing if is_made_at_start(facts, is_cloud) => {
            Finding::ok(check, "the first start makes it for its user alone")
        }
        KeyFile::Missing | KeyFile::Invalid => Finding::skipped(check, "there is no key"),
        KeyFile::Key { mode, .. } => {
            let found = format!("its mode is {:o}", mode & 0o777);
            if mode & OTHERS_WRITE != 0 {
                let found =
                    format!("{found}: others can put another key there, which would orphan every tenant");
                Finding::fail(check, found, format!("chmod 600 {path}"))
            } else if mode & OTHERS_READ != 0 {
                let found = format!("{found}: whoever reads it can tell whose a tenant is");
                Finding::warn(
                    check,
                    found,
                    format!("chmod 600 {path}, or `defaultMode: 0400` for a mounted secret"),
                )
            } else {
                Finding::ok(check, found)
            }
        }
    })
}

fn bound(facts: &DerivationKeyFacts, is_cloud: bool) -> Finding {
    let check = Check::DerivationKeyBound;
    facts.bound_to.judged(check, |kept| {
        let found = match facts.file.known() {
            Some(KeyFile::Key { fingerprint, .. }) => fingerprint,
            _ if is_made_at_start(facts, is_cloud) => {
                return Finding::ok(check, "no key is bound yet: the first start binds the one that it makes");
            }
            _ => return Finding::skipped(check, "there is no key"),
        };
        match kept {
            None => Finding::ok(check, "no key is bound yet: the first start binds this one"),
            Some(kept) if kept == found => Finding::ok(check, format!("the leases belong to this key, {found}")),
            Some(kept) => Finding::fail(
                check,
                format!("the leases belong to key {kept}, and this is {found}: it would orphan every tenant"),
                "bring back the key that the other replicas have, or use the database that belongs to this one",
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        fact::Fact,
        finding::Verdict,
        judge::samples::{about, assert_says, derivation_key, failed},
    };

    fn key(mode: u32) -> Fact<KeyFile> {
        Fact::Known(KeyFile::Key { fingerprint: "f00d".into(), mode })
    }

    fn finding(check: Check, is_cloud: bool, file: Fact<KeyFile>, kept: Option<&str>) -> Finding {
        let bound_to = Fact::Known(kept.map(str::to_owned));
        let facts = DerivationKeyFacts { file, bound_to, ..derivation_key() };
        about(&judge(&facts, is_cloud), check).clone()
    }

    #[test]
    fn a_key_is_there_or_may_be_made() {
        let check = Check::DerivationKeyFile;
        for (file, kept, is_cloud, verdict, part) in [
            (key(0o600), None, true, Verdict::Ok, "f00d"),
            (Fact::Known(KeyFile::Invalid), None, false, Verdict::Fail, "64 hexadecimal digits"),
            (Fact::Known(KeyFile::Missing), Some("beef"), false, Verdict::Fail, "orphan every tenant"),
            (Fact::Known(KeyFile::Missing), None, true, Verdict::Fail, "openssl rand -hex 32"),
            (Fact::Known(KeyFile::Missing), None, false, Verdict::Ok, "the first start makes it"),
            (failed(), None, true, Verdict::Fail, "it burns"),
        ] {
            assert_says(&finding(check, is_cloud, file, kept), verdict, part);
        }
        let bound_to = Fact::after(Check::LeasesFile);
        let facts = DerivationKeyFacts { file: Fact::Known(KeyFile::Missing), bound_to, ..derivation_key() };
        assert_says(about(&judge(&facts, false), check), Verdict::Skipped, "not known");
    }

    #[test]
    fn what_a_first_start_makes_is_well() {
        for finding in judge(
            &DerivationKeyFacts {
                file: Fact::Known(KeyFile::Missing),
                bound_to: Fact::Known(None),
                ..derivation_key()
            },
            false,
        ) {
            assert_says(&finding, Verdict::Ok, "the first start");
        }
    }

    #[test]
    fn nobody_else_reads_or_writes_it() {
        let check = Check::DerivationKeyMode;
        for (mode, verdict, part) in [
            (0o600, Verdict::Ok, "600"),
            (0o640, Verdict::Ok, "640"),
            (0o644, Verdict::Warn, "chmod 600"),
            (0o620, Verdict::Fail, "others can put another key"),
            (0o602, Verdict::Fail, "chmod 600"),
        ] {
            assert_says(&finding(check, true, key(mode), None), verdict, part);
        }
        let none = finding(check, true, Fact::Known(KeyFile::Missing), None);
        assert_says(&none, Verdict::Skipped, "no key");
    }

    #[test]
    fn another_key_would_orphan_every_tenant() {
        let check = Check::DerivationKeyBound;
        assert_says(&finding(check, true, key(0o600), None), Verdict::Ok, "binds this one");
        assert_says(&finding(check, true, key(0o600), Some("f00d")), Verdict::Ok, "this key");
        assert_says(&finding(check, true, key(0o600), Some("beef")), Verdict::Fail, "orphan every tenant");
        let facts = DerivationKeyFacts { bound_to: Fact::after(Check::PostgresReach), ..derivation_key() };
        assert_says(about(&judge(&facts, true), check), Verdict::Skipped, "postgres.reach failed");
        let none = finding(check, true, Fact::Known(KeyFile::Missing), Some("beef"));
        assert_says(&none, Verdict::Skipped, "no key");
    }
}
