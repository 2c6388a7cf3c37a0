//! The embedded pair's lease file.

use crate::doctor::{check::Check, facts::Embedded, finding::Finding};

pub(super) fn judge(facts: &Embedded) -> [Finding; 2] {
    let (file, clock) = (Check::LeasesFile, Check::LeasesClock);
    [
        facts.leases.judged(file, |leases| match leases {
            None => Finding::ok(file, "there is none yet: the first start makes it"),
            Some(leases) if leases.format > leases.format_known => Finding::fail(
                file,
                format!("its format is {}, this build knows up to {}", leases.format, leases.format_known),
                "use a newer build",
            ),
            Some(leases) if leases.is_of_this_boot => {
                Finding::ok(file, format!("format {}, of this boot of the machine", leases.format))
            }
            Some(leases) => Finding::ok(
                file,
                format!(
                    "format {}, of an earlier boot of the machine: every lease in it has run out",
                    leases.format
                ),
            ),
        }),
        facts.boot.judged(clock, |boot| {
            Finding::ok(
                clock,
                format!("the clock counts while the machine sleeps, and belongs to boot {boot}"),
            )
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        fact::Fact,
        facts::Backends,
        finding::Verdict,
        judge::samples::{assert_says, embedded, failed},
    };

    fn facts() -> Embedded {
        let Backends::Embedded(embedded) = embedded().backends else { panic!("embedded facts") };
        *embedded
    }

    #[test]
    fn a_lease_file_is_ours_and_not_too_new() {
        let Fact::Known(Some(good)) = facts().leases else { panic!("a file") };
        for (leases, verdict, part) in [
            (Fact::Known(Some(good.clone())), Verdict::Ok, "of this boot"),
            (Fact::Known(None), Verdict::Ok, "none yet"),
            (
                Fact::Known(Some(leasehold_lease::SqliteFile { format: 9, ..good.clone() })),
                Verdict::Fail,
                "format is 9",
            ),
            (
                Fact::Known(Some(leasehold_lease::SqliteFile { is_of_this_boot: false, ..good })),
                Verdict::Ok,
                "an earlier boot",
            ),
            (failed(), Verdict::Fail, "it burns"),
        ] {
            assert_says(&judge(&Embedded { leases, ..facts() })[0], verdict, part);
        }
        assert_says(&judge(&facts())[1], Verdict::Ok, "b007");
        assert_says(&judge(&Embedded { boot: failed(), ..facts() })[1], Verdict::Fail, "it burns");
    }
}
