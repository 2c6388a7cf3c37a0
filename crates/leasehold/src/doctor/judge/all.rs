//! Everything at once.

use super::{container, derivation_key, leases, postgres, probed, process, state_root, times, tls};
use crate::doctor::{
    check::Check,
    fact::Fact,
    facts::{Backends, Facts},
    finding::Finding,
};

/// The findings of all facts, in the order of the checks. `loaded` says what was loaded.
pub(crate) fn judge(facts: &Facts, loaded: &str) -> Vec<Finding> {
    let mut findings = configuration(loaded, &facts.serving).to_vec();
    match &facts.backends {
        Backends::Cloud(cloud) => {
            findings.extend(postgres::judge(&cloud.postgres, &facts.settings));
            findings.extend(container::judge(&cloud.container));
        }
        Backends::Embedded(embedded) => {
            findings.extend(leases::judge(embedded));
            findings.extend(probed::judge(&embedded.store, &probed::STORE));
        }
    }
    let is_cloud = facts.backends.is_cloud();
    findings.extend(state_root::judge(&facts.state_root, &facts.settings, is_cloud));
    findings.push(process::open_files(&facts.settings));
    findings.extend(tls::judge(&facts.tls));
    findings.extend(derivation_key::judge(&facts.derivation_key, is_cloud));
    findings.extend(times::judge(facts));
    findings.sort_by_key(|finding| finding.check);
    findings
}

/// The findings about a configuration that was loaded. What only a process that serves is told, such as its replica's id, may be
/// missing where a doctor looks: that is a warning.
pub(crate) fn configuration(loaded: &str, serving: &Fact<()>) -> [Finding; 2] {
    [
        Finding::ok(Check::Config, loaded),
        serving.judged_mildly(Check::ConfigServing, |()| {
            Finding::ok(Check::ConfigServing, "it is enough to serve by")
        }),
    ]
}

/// The same of one that was not.
pub(crate) fn unloaded_configuration(problem: &str) -> [Finding; 2] {
    let next = "mend the configuration; `leasehold serve --help` lists every key";
    [
        Finding::fail(Check::Config, problem, next),
        Finding::skipped(Check::ConfigServing, "config.load failed"),
    ]
}

/// Everything, where there is no configuration to look by. Which pair of backends it would have named is not known, so the checks of
/// both are told.
pub(crate) fn unloaded(problem: &str) -> Vec<Finding> {
    let [load, serving] = unloaded_configuration(problem);
    let is_told = |check: &&Check| ![load.check, serving.check].contains(*check);
    let rest = Check::ALL.iter().filter(is_told).map(|check| Finding::skipped(*check, "config.load failed"));
    let rest: Vec<Finding> = rest.collect();
    [load, serving].into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        facts::Probed,
        finding::Verdict,
        judge::samples::{assert_says, cloud, embedded, failed},
    };

    #[test]
    fn every_check_of_a_pair_is_told_once_and_in_order_whatever_failed() {
        for is_cloud in [false, true] {
            let mut facts = if is_cloud { cloud() } else { embedded() };
            let others: &[&str] =
                if is_cloud { &["leases.", "store."] } else { &["postgres.", "container."] };
            let is_of_pair = |check: &Check| !others.iter().any(|other| check.id().starts_with(other));
            let expected: Vec<Check> = Check::ALL.iter().copied().filter(is_of_pair).collect();
            let of = |facts: &Facts| judge(facts, "x").iter().map(|f| f.check).collect::<Vec<_>>();
            assert_eq!(of(&facts), expected);
            match &mut facts.backends {
                Backends::Embedded(embedded) => embedded.store = Probed::unasked("_doctor/1/", "x"),
                Backends::Cloud(cloud) => cloud.container.probed = Probed::unasked("_doctor/1/", "x"),
            }
            assert_eq!(of(&facts), expected);
        }
        let skipped = unloaded("x");
        assert_eq!(skipped.iter().map(|finding| finding.check).collect::<Vec<_>>(), Check::ALL);
        assert_eq!(skipped.iter().filter(|finding| finding.verdict == Verdict::Fail).count(), 1);
    }

    #[test]
    fn what_is_missing_to_serve_is_a_warning() {
        let [_, missing] = configuration("x", &failed());
        assert_says(&missing, Verdict::Warn, "it burns");
    }

    #[test]
    fn what_is_healthy_is_all_ok() {
        for facts in [cloud(), embedded()] {
            for finding in judge(&facts, "x") {
                assert_eq!((finding.verdict, finding.next.as_ref()), (Verdict::Ok, None), "{finding:?}");
            }
        }
    }
}
