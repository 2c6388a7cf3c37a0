//! The container.

use std::time::Duration;

use leasehold_blob::{ContainerReach, KeptDeleted};

use super::{measures::Spread, probed};
use crate::doctor::{check::Check, facts::Container, finding::Finding};

/// From here on a publish, which is two of these, is felt by a rolling upgrade.
const ROUND_TRIP_LONG: Duration = Duration::from_millis(500);

pub(super) fn judge(facts: &Container) -> Vec<Finding> {
    let mut findings = vec![
        reach(facts),
        facts.is_private_way.judged(Check::ContainerTls, |is_private| {
            let check = Check::ContainerTls;
            if *is_private {
                return Finding::ok(check, "TLS, or a way that never leaves this machine");
            }
            let found = "no TLS: whoever is on the way reads and changes every image";
            Finding::warn(check, found, "give `azure.endpoint` an https address")
        }),
    ];
    findings.extend(settings(facts));
    findings.extend(probed::judge(&facts.probed, &probed::CONTAINER));
    findings.push(facts.kept.judged_mildly(Check::ContainerSoftDelete, |found| kept(*found)));
    findings.push(facts.round_trips.judged(Check::ContainerRoundTrip, |trips| {
        let check = Check::ContainerRoundTrip;
        match Spread::of(trips.iter().copied()) {
            None => Finding::skipped(check, "none was made"),
            Some(spread) if spread.median < ROUND_TRIP_LONG => Finding::ok(check, spread.shown()),
            Some(spread) => {
                Finding::warn(check, spread.shown(), "run the replicas in the storage account's region")
            }
        }
    }));
    findings
}

fn reach(facts: &Container) -> Finding {
    let check = Check::ContainerReach;
    let name = &facts.name;
    facts.reach.judged(check, |reach| match reach {
        ContainerReach::Open => Finding::ok(check, format!("container {name} lets us in")),
        ContainerReach::Missing => Finding::fail(
            check,
            format!("there is no container {name}"),
            format!("run `leasehold migrate`, or make it: az storage container create --name {name} --account-name <account>"),
        ),
        ContainerReach::Refused { status, code } => Finding::fail(
            check,
            format!("container {name} answers {status} {code}"),
            "see that the credential belongs to this account, and that our identity is a Storage Blob Data Contributor of the container",
        ),
    })
}

fn settings(facts: &Container) -> [Finding; 2] {
    let (public, hold) = (Check::ContainerPublicAccess, Check::ContainerHold);
    let unasked = "our credential may not read the container's settings: look at them by hand";
    [
        facts.settings.judged_mildly(public, |settings| match settings {
            None => Finding::skipped(public, unasked),
            Some(settings) if settings.is_public => Finding::fail(
                public,
                "anybody can read every image without a credential",
                format!("az storage container set-permission --name {} --public-access off", facts.name),
            ),
            Some(_) => Finding::ok(public, "nobody reads without a credential"),
        }),
        facts.settings.judged_mildly(hold, |settings| match settings {
            None => Finding::skipped(hold, unasked),
            Some(settings) if settings.is_held => Finding::fail(
                hold,
                "an immutability policy or a legal hold keeps objects from being deleted: forget would not be erasure",
                "take the policy off, or use another container",
            ),
            Some(_) => Finding::ok(hold, "no policy keeps objects from being deleted"),
        }),
    ]
}

fn kept(kept: KeptDeleted) -> Finding {
    let check = Check::ContainerSoftDelete;
    let ways = [
        (kept.soft_deleted, "soft delete"),
        (kept.versions, "versioning"),
        (kept.snapshots, "snapshots"),
        (kept.other, "something of its own"),
    ];
    let ways: Vec<&str> = ways.into_iter().filter_map(|(is_on, way)| is_on.then_some(way)).collect();
    if ways.is_empty() {
        return Finding::ok(check, "nothing is kept of what was deleted");
    }
    Finding::fail(
        check,
        format!("forget would not be erasure: the account keeps what was deleted, by {}", ways.join(" and ")),
        "az storage account blob-service-properties update --account-name <account> --enable-delete-retention false \
         --enable-versioning false, or use another account",
    )
}

#[cfg(test)]
mod tests {
    use leasehold_blob::ContainerSettings;

    use super::*;
    use crate::doctor::{
        fact::Fact,
        finding::Verdict,
        judge::samples::{MILLI, about, assert_says, container, failed},
    };

    fn finding(check: Check, spoil: impl FnOnce(&mut Container)) -> Finding {
        let mut facts = container();
        spoil(&mut facts);
        about(&judge(&facts), check).clone()
    }

    #[test]
    fn a_container_has_to_be_there_and_let_us_in() {
        let check = Check::ContainerReach;
        assert_says(&finding(check, |_| {}), Verdict::Ok, "container images");
        let missing = finding(check, |facts| facts.reach = Fact::Known(ContainerReach::Missing));
        assert_says(&missing, Verdict::Fail, "az storage container create --name images");
        let refused = ContainerReach::Refused { status: 403, code: "AuthenticationFailed".into() };
        let refused = finding(check, |facts| facts.reach = Fact::Known(refused));
        assert_says(&refused, Verdict::Fail, "403 AuthenticationFailed");
        assert_says(&finding(check, |facts| facts.reach = failed()), Verdict::Fail, "it burns");
        let open = finding(Check::ContainerTls, |facts| facts.is_private_way = Fact::Known(false));
        assert_says(&open, Verdict::Warn, "https");
    }

    #[test]
    fn a_forget_has_to_be_an_erasure() {
        let check = Check::ContainerSoftDelete;
        let nothing = KeptDeleted::default();
        for (kept, verdict, part) in [
            (nothing, Verdict::Ok, "nothing is kept"),
            (KeptDeleted { soft_deleted: true, ..nothing }, Verdict::Fail, "by soft delete"),
            (KeptDeleted { versions: true, ..nothing }, Verdict::Fail, "by versioning"),
            (KeptDeleted { snapshots: true, ..nothing }, Verdict::Fail, "by snapshots"),
            (
                KeptDeleted { soft_deleted: true, versions: true, ..nothing },
                Verdict::Fail,
                "soft delete and versioning",
            ),
            (KeptDeleted { other: true, ..nothing }, Verdict::Fail, "not be erasure"),
        ] {
            assert_says(&finding(check, |facts| facts.kept = Fact::Known(kept)), verdict, part);
        }
        assert_says(&finding(check, |facts| facts.kept = failed()), Verdict::Warn, "it burns");
    }

    #[test]
    fn nobody_reads_it_and_nothing_is_held() {
        for (check, is_public, is_held, verdict, part) in [
            (Check::ContainerPublicAccess, true, false, Verdict::Fail, "--public-access off"),
            (Check::ContainerPublicAccess, false, true, Verdict::Ok, "nobody"),
            (Check::ContainerHold, false, true, Verdict::Fail, "not be erasure"),
            (Check::ContainerHold, true, false, Verdict::Ok, "no policy"),
        ] {
            let found = ContainerSettings { is_public, is_held };
            let found = finding(check, |facts| facts.settings = Fact::Known(Some(found)));
            assert_says(&found, verdict, part);
        }
        let unasked = finding(Check::ContainerHold, |facts| facts.settings = Fact::Known(None));
        assert_says(&unasked, Verdict::Skipped, "by hand");
        let unknown = finding(Check::ContainerHold, |facts| facts.settings = failed());
        assert_says(&unknown, Verdict::Warn, "it burns");
    }

    #[test]
    fn a_long_way_is_told() {
        let check = Check::ContainerRoundTrip;
        let trips = |took| finding(check, |facts| facts.round_trips = Fact::Known(vec![took; 3]));
        assert_says(&trips(4 * MILLI), Verdict::Ok, "median 4.0 ms");
        assert_says(&trips(600 * MILLI), Verdict::Warn, "region");
    }
}
