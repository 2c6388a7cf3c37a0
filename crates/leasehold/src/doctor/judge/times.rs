//! The lease's times against what was measured.
//!
//! A replica counts on a lease until `margin` before the store ends it. The margin has to cover by how much the two clocks can run apart
//! in one ttl, and by how much nobody can tell them apart: half of a round trip. And a renewal has to be asked for and answered,
//! a second attempt included, before what is counted on is over.

use std::time::Duration;

use leasehold_lease::PostgresRoundTrip;

use super::measures::{Spread, setting, shown};
use crate::doctor::{
    check::Check,
    fact::Fact,
    facts::{Backends, Facts, Settings},
    finding::Finding,
};

/// How much faster or slower one of two clocks is taken to run: a thousandth, twice what NTP corrects at the most.
const DRIFT_PER: u32 = 1_000;
/// How many times the margin should hold what was measured: what is measured once is not the worst that comes.
const MARGIN_FACTOR: u32 = 4;
/// How many times the longest answer should fit into the time for one attempt.
const ATTEMPT_FACTOR: u32 = 10;
/// The resolution of the calendar that is read here.
const WALL_STEP: Duration = Duration::from_millis(1);

/// Two clocks, as far as they were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockDifference {
    /// The server's minus ours, by the fastest round trip.
    pub(super) ahead_micros: i64,
    /// By how much that can be wrong.
    pub(super) error: Duration,
    /// By how much the difference certainly changed while it was looked at.
    pub(super) moved: Duration,
}

/// `None`: nothing was measured.
pub(super) fn clock_of(trips: &[PostgresRoundTrip]) -> Option<ClockDifference> {
    let error_of = |trip: &PostgresRoundTrip| trip.took / 2 + WALL_STEP;
    let best = trips.iter().min_by_key(|trip| trip.took)?;
    let error = error_of(best);
    let moved = trips.iter().map(|trip| {
        let apart = Duration::from_micros(trip.ahead_micros.abs_diff(best.ahead_micros));
        apart.saturating_sub(error_of(trip) + error)
    });
    Some(ClockDifference { ahead_micros: best.ahead_micros, error, moved: moved.max().unwrap_or_default() })
}

/// What the times are held against.
struct Measured {
    /// The longest answer to a change.
    longest: Duration,
    /// By how much the difference of the clocks moved.
    moved: Duration,
    /// What was measured.
    what: &'static str,
}

pub(super) fn judge(facts: &Facts) -> [Finding; 2] {
    let measured = match &facts.backends {
        Backends::Cloud(cloud) => {
            let trips = &cloud.postgres.round_trips;
            let commits = cloud.postgres.commits.known().map_or(&[][..], |commits| &commits.took);
            after(trips, "postgres.round_trip").map(|trips| Measured {
                longest: trips
                    .iter()
                    .map(|trip| trip.took)
                    .chain(commits.iter().copied())
                    .max()
                    .unwrap_or_default(),
                moved: clock_of(trips).map_or(Duration::ZERO, |clock| clock.moved),
                what: "the database's longest answer",
            })
        }
        // One machine has one clock, and an answer is as slow as its disk.
        Backends::Embedded(_) => after(&facts.state_root.syncs, "state_root.sync").map(|syncs| Measured {
            longest: Spread::of(syncs.iter().copied()).map_or(Duration::ZERO, |spread| spread.longest),
            moved: Duration::ZERO,
            what: "the disk's longest write",
        }),
    };
    match measured {
        Ok(measured) => [margin(&facts.settings, &measured), renewal(&facts.settings, &measured)],
        Err(because) => [
            Finding::skipped(Check::TimesMargin, because.clone()),
            Finding::skipped(Check::TimesRenewal, because),
        ],
    }
}

fn after<'a, T>(fact: &'a Fact<T>, name: &str) -> Result<&'a T, String> {
    fact.known().ok_or_else(|| format!("{name} is not known"))
}

fn margin(settings: &Settings, measured: &Measured) -> Finding {
    let check = Check::TimesMargin;
    let Settings { ttl, margin, .. } = *settings;
    let needed = ttl / DRIFT_PER + measured.longest / 2 + measured.moved;
    let wanted = needed * MARGIN_FACTOR;
    let found = format!(
        "margin {} against {}: a thousandth of the ttl and half of {} ({})",
        shown(margin),
        shown(needed),
        measured.what,
        shown(measured.longest)
    );
    if margin >= wanted {
        return Finding::ok(check, found);
    }
    let next = if wanted < ttl / 2 {
        format!("set `margin = \"{}\"`", setting(wanted))
    } else {
        // A longer ttl wants a little more.
        let wanted = wanted + wanted / 50;
        format!("set `margin = \"{}\"` and `ttl = \"{}\"`", setting(wanted), setting(wanted * 4))
    };
    if margin < needed { Finding::fail(check, found, next) } else { Finding::warn(check, found, next) }
}

fn renewal(settings: &Settings, measured: &Measured) -> Finding {
    let check = Check::TimesRenewal;
    let Settings { ttl, margin, renew_every, .. } = *settings;
    let held_for = ttl.saturating_sub(margin);
    // One attempt may take half of what a grant is counted on, and what is left after the wait is for all of them.
    let room = (held_for / 2).min(held_for.saturating_sub(renew_every));
    let wanted = measured.longest * ATTEMPT_FACTOR;
    let found = format!(
        "renewals every {} leave {} for an answer; {} was {}",
        shown(renew_every),
        shown(room),
        measured.what,
        shown(measured.longest)
    );
    if room >= wanted {
        return Finding::ok(check, found);
    }
    let next = if held_for / 2 >= wanted {
        format!("set `renew_every = \"{}\"`, or leave it out", shortened(held_for.saturating_sub(wanted)))
    } else {
        format!("set `ttl = \"{}\"`, and leave `renew_every` out", setting(margin + wanted * 2))
    };
    if room <= measured.longest {
        Finding::fail(check, found, next)
    } else {
        Finding::warn(check, found, next)
    }
}

/// A value for the configuration that is at the most so long.
fn shortened(at_most: Duration) -> String {
    let step = if at_most > Duration::from_secs(1) { 1_000 } else { 1 };
    let millis = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX);
    humantime::format_duration(Duration::from_millis((millis / step * step).max(1))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict,
        judge::samples::{MILLI, assert_says, cloud, embedded, failed},
    };

    const SECOND: Duration = Duration::from_secs(1);

    fn trip(took: Duration, ahead_micros: i64) -> PostgresRoundTrip {
        PostgresRoundTrip { took, ahead_micros }
    }

    fn with_trips(trips: Vec<PostgresRoundTrip>) -> Facts {
        let mut facts = cloud();
        let Backends::Cloud(cloud) = &mut facts.backends else { panic!("cloud facts") };
        cloud.postgres.round_trips = Fact::Known(trips);
        facts
    }

    fn with_longest(longest: Duration) -> Facts {
        with_trips(vec![trip(MILLI, 0), trip(longest, 0)])
    }

    #[test]
    fn a_difference_is_known_to_half_a_round_trip() {
        let found = clock_of(&[trip(9 * MILLI, 4_000), trip(2 * MILLI, 700), trip(5 * MILLI, -900)]).unwrap();
        assert_eq!(found, ClockDifference { ahead_micros: 700, error: 2 * MILLI, moved: Duration::ZERO });
        // 12 ms apart, and 2 + 3 ms of that can be the way's.
        let found = clock_of(&[trip(2 * MILLI, 0), trip(4 * MILLI, 12_000)]).unwrap();
        assert_eq!(found.moved, 7 * MILLI);
        assert_eq!(clock_of(&[]), None);
    }

    #[test]
    fn a_margin_has_to_hold_what_was_measured_four_times() {
        for (longest, verdict, part) in [
            (MILLI, Verdict::Ok, "margin 2.0 s"),
            // 4 x (10 ms + 490 ms) is just held.
            (980 * MILLI, Verdict::Ok, "longest answer (980.0 ms)"),
            (982 * MILLI, Verdict::Warn, "`margin = \"3s\"`"),
            (3_980 * MILLI, Verdict::Warn, "`ttl = "),
            (3_990 * MILLI, Verdict::Fail, "`ttl = "),
        ] {
            assert_says(&judge(&with_longest(longest))[0], verdict, part);
        }
        let mut facts = cloud();
        facts.settings.margin = 5 * MILLI;
        assert_says(&judge(&facts)[0], Verdict::Fail, "`margin = \"100ms\"`");
        // A clock that moved counts whole.
        let moved = with_trips(vec![trip(MILLI, 0), trip(MILLI, 1_000_000)]);
        assert_says(&judge(&moved)[0], Verdict::Warn, "`margin = \"5s\"`");
        // The commits are the longest.
        let mut facts = cloud();
        let Backends::Cloud(cloud) = &mut facts.backends else { panic!("cloud facts") };
        let Fact::Known(commits) = &mut cloud.postgres.commits else { panic!("commits") };
        commits.took = vec![2 * SECOND];
        assert_says(&judge(&facts)[0], Verdict::Warn, "(2.0 s)");
    }

    #[test]
    fn a_renewal_and_a_second_attempt_have_to_be_answered_in_time() {
        for (longest, verdict, part) in [
            (MILLI, Verdict::Ok, "renewals every 3.3 s leave 4.0 s"),
            (400 * MILLI, Verdict::Ok, "400.0 ms"),
            (401 * MILLI, Verdict::Warn, "`ttl = \"11s\"`"),
            (4 * SECOND, Verdict::Fail, "`ttl = \"1m 22s\"`"),
        ] {
            assert_says(&judge(&with_longest(longest))[1], verdict, part);
        }
        let mut facts = with_longest(20 * MILLI);
        facts.settings.renew_every = 7_900 * MILLI;
        assert_says(&judge(&facts)[1], Verdict::Warn, "`renew_every = \"7s\"`");
        facts.settings.renew_every = 7_985 * MILLI;
        assert_says(&judge(&facts)[1], Verdict::Fail, "or leave it out");
    }

    #[test]
    fn without_a_measure_nothing_is_said_to_be_right() {
        let mut facts = cloud();
        let Backends::Cloud(cloud) = &mut facts.backends else { panic!("cloud facts") };
        cloud.postgres.round_trips = failed();
        for finding in judge(&facts) {
            assert_says(&finding, Verdict::Skipped, "postgres.round_trip is not known");
        }
        let mut facts = embedded();
        assert_says(&judge(&facts)[1], Verdict::Ok, "the disk's longest write was 2.0 ms");
        facts.state_root.syncs = Fact::Known(vec![SECOND]);
        assert_says(&judge(&facts)[1], Verdict::Warn, "`ttl = ");
        facts.state_root.syncs = failed();
        assert_says(&judge(&facts)[0], Verdict::Skipped, "state_root.sync is not known");
    }

    /// The values of what is told to be set, in the order of `keys`.
    fn told(finding: &Finding, key: &str) -> Option<Duration> {
        let next = finding.next.as_deref()?;
        let (_, rest) = next.split_once(&format!("`{key} = \""))?;
        Some(
            humantime::parse_duration(rest.split_once('"')?.0)
                .expect("a duration as the configuration takes it"),
        )
    }

    #[test]
    fn who_does_what_is_told_is_not_told_more() {
        for longest in [MILLI, 30 * MILLI, 300 * MILLI, 1_500 * MILLI, 5 * SECOND, 40 * SECOND] {
            for (ttl, margin) in [(1, 1), (10, 2), (10, 9), (60, 1), (600, 30)] {
                let mut facts = with_longest(longest);
                facts.settings.ttl = ttl * SECOND;
                facts.settings.margin = (margin * SECOND).min(facts.settings.ttl / 2);
                facts.settings.renew_every = (facts.settings.ttl / 2).saturating_sub(MILLI);
                for _ in 0..4 {
                    for (at, keys) in [["margin", "ttl"], ["renew_every", "ttl"]].into_iter().enumerate() {
                        let finding = &judge(&facts)[at];
                        if finding.next.is_some() {
                            assert!(keys.iter().any(|key| told(finding, key).is_some()), "{finding:?}");
                        }
                        facts.settings.margin = told(finding, "margin").unwrap_or(facts.settings.margin);
                        facts.settings.ttl = told(finding, "ttl").unwrap_or(facts.settings.ttl);
                        let held_for = facts.settings.ttl.saturating_sub(facts.settings.margin);
                        let default = (facts.settings.ttl / 3).min(held_for / 2);
                        facts.settings.renew_every = told(finding, "renew_every").unwrap_or(default);
                    }
                }
                for finding in judge(&facts) {
                    assert_eq!(finding.verdict, Verdict::Ok, "{longest:?}, {ttl} and {margin}: {finding:?}");
                }
            }
        }
    }
}
